//! The arguments that choose GPUs.

use clap::Args;
use cuinstr::duration;
use cuinstr_gpus::Wanted;
use std::path::PathBuf;

/// What to look at.
#[derive(Debug, Args)]
pub(crate) struct GpusArgs {
    /// One JSON object for each GPU, in a list.
    #[arg(long)]
    pub(crate) json: bool,

    /// Memory that must be free, such as 20G or 512M; a GPU with less is not taken.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "0")]
    pub(crate) min_free: u64,

    /// Time a context and an empty kernel on each GPU, in a process that is killed after --probe-limit.
    #[arg(long)]
    pub(crate) probe: bool,

    /// How long one probe may take.
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "20s")]
    pub(crate) probe_limit: u64,

    /// Use this file instead of the cuinstr.toml found here or above.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Which GPUs a program gets (`cuinstr run`).
#[derive(Debug, Args)]
#[command(next_help_heading = "GPU")]
pub(crate) struct ChoiceArgs {
    /// Give the program this GPU, and lease it so that no other start takes it: auto (the best that is free), a number, or a UUID.
    #[arg(long, value_name = "GPU")]
    pub(crate) gpu: Option<Wanted>,

    /// How many GPUs `--gpu auto` takes.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..), default_value = "1", requires = "gpu")]
    pub(crate) gpu_count: u8,

    /// Memory that must be free on each, such as 20G or 512M.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "0", requires = "gpu")]
    pub(crate) min_free: u64,

    /// Wait so long until enough GPUs are free; counts from the start of the command.
    #[arg(long, value_name = "TIME", value_parser = duration::parse, requires = "gpu")]
    pub(crate) wait: Option<u64>,
}

/// Bytes of `20G`, `512M`, `64K` or a plain number; the units are powers of 1024.
///
/// # Errors
/// A sentence for the user.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim_end_matches("iB").trim_end_matches('B') {
        "" => 0,
        "K" | "k" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err("write a whole number and a unit, such as 20G or 512M".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| "write a whole number and a unit, such as 20G or 512M".to_owned())?;
    number.checked_mul(1 << shift).ok_or_else(|| "no GPU has so much memory".to_owned())
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_read() {
        assert_eq!(size("20G"), Ok(20 << 30));
        assert_eq!(size("512MiB"), Ok(512 << 20));
        assert_eq!(size("1024"), Ok(1024));
        for wrong in ["", "G", "1.5G", "20X", "99999999T", "-1G"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
