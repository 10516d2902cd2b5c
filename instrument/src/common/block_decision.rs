//! A block's decision whether it runs, as PTX. Both passes insert it into kernels that can be paused.

/// The two parts of a block's decision whether it runs, as PTX: the reads, and the decision. Text between them overlaps the reads.
pub(crate) const DECIDE: &str = include_str!("decide.ptx");
pub(crate) const DECLINE: &str = include_str!("decline.ptx");

/// The lines of it that only architectures with clusters know: blocks of a cluster that has several never decline.
pub(crate) const OF_CLUSTERS: &str = "\tmov.u32 x, %cluster_nctarank;\n\tsetp.eq.and.u32 p, x, 1, p;\n";

/// The decision around `between`, for an architecture that has clusters, or for one that has none.
pub(crate) fn decision(between: &str, has_clusters: bool) -> String {
    let decline = DECLINE.replace("@CLUSTERS@\n", if has_clusters { OF_CLUSTERS } else { "" });
    format!(
        "\n\t{{\n\t.reg .b32 launch, word;\n\t{{\n\t.reg .pred p, leads;\n\t.reg .b32 first, span, index, x, y, mask;\n\t.reg .b64 asked, list, at;\n{DECIDE}\t}}\
         {between}\n\t{{\n\t.reg .pred p;\n\t.reg .b32 index, x, y, mask;\n\t.reg .b64 at;\n{decline}\t}}\n\t}}"
    )
}
