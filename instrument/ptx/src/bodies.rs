//! Bodies that are read side by side: first where each ends, by its braces alone, and then what is in it.

use crate::function::Function;
use crate::module::{Module, Reader, parse, read};
use crate::shares::{Run, each_share};

/// A text of fewer bytes is read at once.
const SMALL: usize = 1 << 20;

/// The same as [`parse`], with bodies read as the caller likes, such as on several threads.
#[must_use]
pub fn parse_on<'a>(text: &'a str, run: &Run<'_>) -> Module<'a> {
    if text.len() < SMALL {
        return parse(text);
    }
    side_by_side(text, run).unwrap_or_else(|| parse(text))
}

/// None where something is wrong with the text, or a body does not end where its braces say so: a string may hold some.
fn side_by_side<'a>(text: &'a str, run: &Run<'_>) -> Option<Module<'a>> {
    let mut module = read(text, true);
    if !module.faults.is_empty() {
        return None;
    }
    let fronts = &module.functions;
    let found = each_share(fronts, run, |share| fronts[share].iter().map(|front| filled(text, front)).collect::<Option<Vec<_>>>());
    module.functions = found.into_iter().collect::<Option<Vec<_>>>()?.into_iter().flatten().collect();
    Some(module)
}

/// A function of which all is known but its body.
fn filled<'a>(text: &'a str, front: &Function<'a>) -> Option<Function<'a>> {
    let &Function { name, at, is_kernel, linkage, head, body, .. } = front;
    let (parameters, results) = (front.parameters.clone(), front.results.clone());
    let mut function = Function { name, at, is_kernel, linkage, head, parameters, results, ..Function::default() };
    let mut reader = Reader::new(text, body.start as usize + 1);
    reader.body(&mut function);
    (reader.faults.is_empty() && reader.lexer.open_comment.is_none() && function.body == body).then_some(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKWARDS: &Run<'_> = &|count, work| (0..count).rev().for_each(work);

    /// So many functions, with this one in the middle, and behind them a section.
    fn text(count: usize, odd: &str) -> String {
        let plain = |nth: usize| {
            format!(
                "// {{ f{nth}\n.visible .func (.param .b32 r) f{nth}(.param .b64 p)\n{{\n.reg .b32 %r<4>; // }}\n{{ .reg .pred %p; L: @%p bra L; }}\n\
                 mov.b64 %rd1, {{%r1, %r2}}; /* }} */\n.loc 1 {nth} 3\nret;\n}}\n"
            )
        };
        let functions: String = (0..count).map(|nth| if nth == count / 2 { odd.to_owned() } else { plain(nth) }).collect();
        format!(".version 9.0\n.target sm_90\n.address_size 64\n{functions}.file 1 \"a.cu\"\n.section .debug_str {{ .b8 1, 2 }}\n")
    }

    #[test]
    fn what_is_read_side_by_side_is_what_is_read_in_order() {
        let odd = ".entry k() .maxntid 32 { .pragma \"nounroll\"; exit; }\n";
        let texts = [text(3, odd), text(8_000, odd)];
        for text in &texts {
            let module = side_by_side(text, BACKWARDS).expect("nothing is wrong");
            assert_eq!(format!("{module:?}"), format!("{:?}", parse(text)));
        }
        assert!(texts[1].len() > SMALL);
    }

    #[test]
    fn what_is_odd_is_read_in_order() {
        for odd in [
            ".entry k() { .pragma \"}\"; exit; }\n",
            ".entry k() { exit }\n",
            ".entry k() { exit; }}\n",
            ".entry k() { exit;\n",
            ".entry k() { exit; /* }\n",
            "\0",
        ] {
            assert!(side_by_side(&text(1, odd), BACKWARDS).is_none(), "{odd}");
        }
        let text = text(8_000, ".entry k() { .pragma \"}\"; exit; }\n");
        assert_eq!(format!("{:?}", parse_on(&text, BACKWARDS)), format!("{:?}", parse(&text)));
    }
}
