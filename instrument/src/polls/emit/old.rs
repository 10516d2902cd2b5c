//! Polls in PTX that is older than an instruction of theirs.

/// The version that brought `activemask`.
const ACTIVEMASK: (u32, u32) = (6, 2);

/// Spells `activemask` as a vote where this version has none. Later versions have no vote without a mask.
pub(in crate::polls) fn spell(version: Option<&str>, text: String) -> String {
    if number(version).is_none_or(|number| number >= ACTIVEMASK) {
        return text;
    }
    let mut parts = text.split("activemask.b32 ");
    let mut spelled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (register, rest) = part.split_once(';').unwrap_or((part, ""));
        spelled.extend(["vote.ballot.b32 ", register, ", 1;", rest]);
    }
    spelled
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
        let spelled = |version| spell(version, text.to_owned());
        assert_eq!(spelled(Some("6.1")), "vote.ballot.b32 a, 1;\n\tx;\nvote.ballot.b32 b, 1;");
        for version in [Some("6.2"), Some("10.0"), None] {
            assert_eq!(spelled(version), text);
        }
    }
}
