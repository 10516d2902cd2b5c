//! Polls in PTX that is older than an instruction of theirs.

use crate::common::edit::Edit;

/// The version that brought `activemask`.
const ACTIVEMASK: (u32, u32) = (6, 2);

/// Spells `activemask` as a vote where this version has none. Later versions have no vote without a mask.
pub(super) fn spell(version: Option<&str>, edits: &mut [Edit]) {
    if number(version).is_none_or(|number| number >= ACTIVEMASK) {
        return;
    }
    for edit in edits {
        let mut parts = edit.text.split("activemask.b32 ");
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (register, rest) = part.split_once(';').unwrap_or((part, ""));
            text.extend(["vote.ballot.b32 ", register, ", 1;", rest]);
        }
        edit.text = text;
    }
}

fn number(version: Option<&str>) -> Option<(u32, u32)> {
    let (major, minor) = version?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_ptx_has_no_activemask() {
        let text = "activemask.b32 a;\n\tx;\nactivemask.b32 b;";
        let spelled = |version| {
            let mut edits = [Edit { at: 0, closes: false, text: text.to_owned() }];
            spell(version, &mut edits);
            edits[0].text.clone()
        };
        assert_eq!(spelled(Some("6.1")), "vote.ballot.b32 a, 1;\n\tx;\nvote.ballot.b32 b, 1;");
        for version in [Some("6.2"), Some("10.0"), None] {
            assert_eq!(spelled(version), text);
        }
    }
}
