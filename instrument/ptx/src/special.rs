//! Names of special registers. ptxas 13.0 takes them for declared registers too, and then may read the special register in their place.

/// The special registers of PTX ISA 9.0, without those that have numbers, and two more that ptxas 13.0 knows.
const NAMES: &[&str] = &[
    "%aggr_smem_size",
    "%atexit_fragment_addr",
    "%clock",
    "%clock64",
    "%clock_hi",
    "%cluster_ctaid",
    "%cluster_ctarank",
    "%cluster_nctaid",
    "%cluster_nctarank",
    "%clusterid",
    "%ctaid",
    "%current_graph_exec",
    "%devtool_at_exit_pc",
    "%dynamic_smem_size",
    "%globaltimer",
    "%globaltimer_hi",
    "%globaltimer_lo",
    "%gridid",
    "%is_explicit_cluster",
    "%laneid",
    "%lanemask_eq",
    "%lanemask_ge",
    "%lanemask_gt",
    "%lanemask_le",
    "%lanemask_lt",
    "%nclusterid",
    "%nctaid",
    "%nsmid",
    "%ntid",
    "%nwarpid",
    "%pm0_64",
    "%pm1_64",
    "%pm2_64",
    "%pm3_64",
    "%pm4_64",
    "%pm5_64",
    "%pm6_64",
    "%pm7_64",
    "%reserved_smem_offset_begin",
    "%reserved_smem_offset_cap",
    "%reserved_smem_offset_end",
    "%smid",
    "%tid",
    "%total_smem_size",
    "%warpid",
];

/// Special registers that are told apart by numbers from 0 on, and how many there are.
const NUMBERED: &[(&str, u32)] = &[("%envreg", 32), ("%pm", 8), ("%reserved_smem_offset_", 2)];

/// Whether a declaration spells a special register: a name, or one that any number below `count` follows.
pub(crate) fn is_special(name: &str, count: Option<u32>) -> bool {
    let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
    let Some(count) = count else {
        let is_one = |(prefix, count): &(&str, u32)| {
            name.strip_prefix(prefix).is_some_and(|rest| is_number(rest) && rest.parse().is_ok_and(|number: u32| number < *count))
        };
        return NAMES.contains(&name) || NUMBERED.iter().any(is_one);
    };
    // Where a range's name ends in digits itself, any number behind them counts.
    let is_below = |rest: &str| is_number(rest) && (name.ends_with(is_digit) || rest.parse().is_ok_and(|number: u32| number < count));
    let is_numbered = |(prefix, _): &(&str, u32)| name.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || is_number(rest));
    count > 0 && (NUMBERED.iter().any(is_numbered) || NAMES.iter().any(|known| known.strip_prefix(name).is_some_and(is_below)))
}

fn is_digit(letter: char) -> bool {
    letter.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::is_special;

    #[test]
    fn names_and_ranges_that_spell_a_special_register_are_told() {
        let names = ["%clock64", "%tid", "%pm7", "%pm0_64", "%envreg31", "%reserved_smem_offset_1"];
        assert_eq!(names.map(|name| is_special(name, None)), [true; 6]);
        let others = ["%clock6", "%t", "%tid0", "%pm8", "%envreg32", "%envreg", "clock64", "%TID", "%p", ""];
        assert_eq!(others.map(|name| is_special(name, None)), [false; 10]);
        let ranges = [("%clock", 65), ("%clock6", 5), ("%pm", 1), ("%pm0_", 100), ("%envreg", 40), ("%envreg1", 2)];
        assert_eq!(ranges.map(|(name, count)| is_special(name, Some(count))), [true; 6]);
        let others = [("%clock", 64), ("%p", 900), ("%tid", 900), ("%r", 900), ("%pm", 0), ("%clock64", 900)];
        assert_eq!(others.map(|(name, count)| is_special(name, Some(count))), [false; 6]);
    }
}
