//! From a wish to leased GPUs.

use crate::device::Gpu;
use crate::error::{Error, Refusal};
use crate::lease::{Lease, Leases};
use crate::score::{Preferences, Rank, rank, refusal};
use crate::visible::Visible;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// Which GPUs are wanted (`--gpu`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// The best that are free.
    Auto,
    /// This one: its number, its UUID, or the beginning of its UUID.
    Named(String),
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let prefixed = text.starts_with("GPU-") || text.starts_with("MIG-");
        match text {
            "auto" => Ok(Self::Auto),
            _ if prefixed || text.parse::<u32>().is_ok() => Ok(Self::Named(text.to_owned())),
            _ => Err("expected `auto`, a number, or a UUID (`cuinstr gpus` lists them)".to_owned()),
        }
    }
}

/// What a program needs.
#[derive(Debug, Clone)]
pub struct Request {
    /// Which GPUs.
    pub wanted: Wanted,
    /// How many (`--gpu-count`).
    pub count: usize,
    /// Bytes of memory that must be free on each (`--min-free`).
    pub least_free: u64,
    /// How long to wait until enough are free (`--wait`).
    pub wait: Duration,
    /// The part `[gpu]` of the configuration.
    pub preferences: Preferences,
    /// What the environment allows.
    pub visible: Visible,
}

impl Default for Request {
    /// The best GPU that is free now.
    fn default() -> Self {
        let (wanted, visible) = (Wanted::Auto, Visible::of_environment());
        Self { wanted, count: 1, least_free: 0, wait: Duration::ZERO, preferences: Preferences::default(), visible }
    }
}

/// GPUs that this process may use, and no other start takes while the leases last.
#[derive(Debug)]
pub struct Choice {
    /// The GPUs, the best first.
    pub gpus: Vec<Gpu>,
    leases: Vec<Lease>,
}

impl Choice {
    /// The value of `CUDA_VISIBLE_DEVICES` for the program. UUIDs mean the same GPU in each order of devices.
    #[must_use]
    pub fn visible_devices(&self) -> String {
        self.gpus.iter().map(|gpu| gpu.uuid.as_str()).collect::<Vec<_>>().join(",")
    }

    /// Lets programs that this process starts inherit the leases, so that they last until the last of these programs has ended.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn outlive_exec(&self) -> std::io::Result<()> {
        self.leases.iter().try_for_each(Lease::outlive_exec)
    }
}

/// Chooses GPUs and takes their leases; `look` lists the GPUs ([`crate::look`]).
///
/// All leases of a choice are taken, or none, so that two starts that need several GPUs each do not wait for one another.
///
/// # Errors
/// [`Error`] says which GPU was refused for what reason.
pub fn choose(request: &Request, leases: &Leases, mut look: impl FnMut() -> Result<Vec<Gpu>, Error>) -> Result<Choice, Error> {
    const BETWEEN_LOOKS: Duration = Duration::from_millis(200);
    let end = Instant::now() + request.wait;
    loop {
        let gpus = request.visible.keep(look()?)?;
        let refused = match attempt(request, leases, gpus)? {
            Ok(choice) => return Ok(choice),
            Err(refused) => refused,
        };
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Error::TooFew { wanted: request.count, refused });
        }
        // Starts that wait together must not look together for ever.
        let spread = Duration::from_millis(u64::from(std::process::id() % 50));
        std::thread::sleep(left.min(BETWEEN_LOOKS + spread));
    }
}

/// One attempt: a choice, or why each GPU was not taken.
fn attempt(request: &Request, leases: &Leases, gpus: Vec<Gpu>) -> Result<Result<Choice, Vec<(String, Refusal)>>, Error> {
    let mut choice = Choice { gpus: Vec::new(), leases: Vec::new() };
    let mut refused = Vec::new();
    for rank in candidates(request, gpus)? {
        if choice.gpus.len() == request.count {
            break;
        }
        let lease = match rank.refusal {
            Some(refusal) => Err(refusal),
            None => leases.take(&rank.gpu.uuid)?,
        };
        match lease {
            Ok(lease) => {
                choice.leases.push(lease);
                choice.gpus.push(rank.gpu);
            }
            Err(refusal) => refused.push((rank.gpu.title(), refusal)),
        }
    }
    Ok(if choice.gpus.len() == request.count { Ok(choice) } else { Err(refused) })
}

/// The GPUs in the order in which they are tried.
fn candidates(request: &Request, gpus: Vec<Gpu>) -> Result<Vec<Rank>, Error> {
    let Wanted::Named(name) = &request.wanted else { return Ok(rank(gpus, &request.preferences, request.least_free)) };
    let known = gpus.iter().map(Gpu::title).collect::<Vec<_>>().join("; ");
    let mut named: Vec<Gpu> = gpus.into_iter().filter(|gpu| gpu.is_called(name)).collect();
    let Some(gpu) = named.pop().filter(|_| named.is_empty()) else { return Err(Error::Unknown { name: name.clone(), known }) };
    // Whoever names a GPU means it, whatever the configuration excludes.
    let preferences = Preferences { exclude: Vec::new(), ..request.preferences.clone() };
    let refusal = refusal(&gpu, &preferences, request.least_free);
    Ok(vec![Rank { gpu, score: 0.0, refusal }])
}
