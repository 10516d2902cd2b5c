//! `#[test]`, where Rust's own harness does not do: it decides before a test runs whether that test is ignored. See `cuinstr_trial`.

use proc_macro::{TokenStream, TokenTree};

/// Leaves the function as it is, and adds it to the binary's list of tests.
///
/// # Panics
/// If it does not stand on a function.
#[proc_macro_attribute]
pub fn test(_: TokenStream, function: TokenStream) -> TokenStream {
    let mut words = function.clone().into_iter().skip_while(|word| !matches!(word, TokenTree::Ident(word) if word.to_string() == "fn"));
    let name = words.nth(1).expect("`#[test]` stands on a function");
    let entry = format!(
        "::cuinstr_trial::inventory::submit! {{
            ::cuinstr_trial::Test {{ name: concat!(module_path!(), \"::{name}\"), run: {name} }}
        }}"
    );
    function.into_iter().chain(entry.parse::<TokenStream>().expect("it is Rust")).collect()
}
