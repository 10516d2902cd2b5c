//! What is to be judged, what is known of it, and where verdicts are written down. Engines differ in where candidates are compiled and run; a plan
//! is the same for all of them.

use crate::baseline::Comparison;
use crate::evaluation::{By, Settings};
use crate::headers::Headers;
use crate::journal::{Conditions, Head, Journal, VERSION};
use crate::limits::Limits;
use crate::queue::Item;
use crate::spec::Spec;
use crate::summary::Summary;
use crate::verdict::{Finding, Judgement};
use crate::{Candidate, Error, Result};
use cuinstr_image::Arch;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// An evaluation's candidates, its journal, and the verdicts so far.
#[derive(Debug)]
pub struct Plan {
    spec: Arc<Spec>,
    candidates: Vec<Candidate>,
    hashes: Vec<String>,
    rounds: u32,
    conditions: Conditions,
    journal: Journal,
    ground: Option<Ground>,
    left: Vec<Item>,
    open: HashSet<Item>,
    judgements: Vec<Judgement>,
    known: usize,
}

/// What verdicts depend on besides, which is only known once an engine has a compiler and a GPU.
#[derive(Debug, Clone)]
pub struct Ground {
    /// Name and version of the compiler.
    pub compiler: String,
    /// Architecture that candidates are compiled for.
    pub arch: Arch,
    /// Name of the GPU; empty if nothing is run.
    pub device: String,
    /// Version of its driver.
    pub driver: String,
    /// What each case may take; empty if nothing is run.
    pub limits: Vec<Limits>,
}

/// Where a judgement comes from.
#[derive(Debug, Clone, Default)]
pub struct Judged {
    /// How long running it took.
    pub elapsed: Duration,
    /// Number of the GPU.
    pub device: Option<usize>,
    /// The machine, if there are several.
    pub node: Option<String>,
}

impl Plan {
    /// Opens the journal and checks it.
    ///
    /// # Errors
    /// If there are no candidates, two have one name, fuel limits PTX by CUDA source, or the journal is of another evaluation.
    pub fn open(spec: &Spec, candidates: &[Candidate], settings: &Settings) -> Result<Self> {
        if candidates.is_empty() {
            return Err(Error::NoCandidates("the mutator finds nothing to change, or all was excluded".into()));
        }
        let mut names = HashSet::new();
        if let Some(twice) = candidates.iter().find(|candidate| !names.insert(&candidate.name)) {
            return Err(Error::SameName(twice.name.clone()));
        }
        let reference = Candidate::reference(spec);
        let other = candidates.iter().find(|candidate| candidate.is_ptx() != reference.is_ptx());
        if let (By::Fuel, Some(other)) = (settings.by, other) {
            return Err(Error::OtherFuel { candidate: other.name.clone(), reference: reference.name });
        }
        let conditions = conditions(spec, settings);
        let journal = match &settings.journal {
            Some(path) => Journal::open(path)?,
            None => Journal::none(),
        };
        journal.check(&conditions)?;
        let mut headers = Headers::of(spec);
        Ok(Self {
            hashes: candidates.iter().map(|candidate| candidate.hash(&mut headers)).collect(),
            spec: Arc::new(spec.clone()),
            candidates: candidates.to_vec(),
            rounds: settings.repeat.max(1),
            conditions,
            journal,
            ground: None,
            left: Vec::new(),
            open: HashSet::new(),
            judgements: Vec::with_capacity(candidates.len()),
            known: 0,
        })
    }

    /// What candidates are judged by.
    #[must_use]
    pub fn spec(&self) -> &Arc<Spec> {
        &self.spec
    }

    /// The candidates.
    #[must_use]
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// The GPU and the limits that the journal's verdicts were given on, if it has some.
    ///
    /// # Errors
    /// If the journal is damaged.
    pub fn known_limits(&self) -> Result<Option<Vec<Limits>>> {
        self.journal.limits(&self.spec.cases)
    }

    /// What the journal says of the GPU, the driver, the compiler or the architecture.
    #[must_use]
    pub fn known_condition(&self, name: &str) -> Option<&str> {
        self.journal.condition(name)
    }

    /// Writes the journal's head, if it has none, and says what is left to judge, all rounds of a candidate behind each other.
    ///
    /// # Errors
    /// If the journal's verdicts stand on another ground, or it can't be written.
    pub fn begin(&mut self, ground: Ground) -> Result<&[Item]> {
        let mut conditions = self.conditions.clone();
        conditions.extend(ground.conditions());
        self.journal.begin(Head {
            journal: VERSION,
            cuinstr: env!("CARGO_PKG_VERSION").into(),
            conditions,
            spec: self.spec.path.display().to_string(),
            device: ground.device.clone(),
            limits: ground.limits.clone(),
        })?;
        for (index, candidate) in self.candidates.iter().enumerate() {
            for round in 1..=self.rounds {
                match self.journal.known(&candidate.name, &self.hashes[index], round) {
                    Some(known) => self.judgements.push(known.clone()),
                    None => self.left.push(Item { candidate: index, round }),
                }
            }
        }
        self.known = self.judgements.len();
        self.open = self.left.iter().copied().collect();
        self.ground = Some(ground);
        Ok(&self.left)
    }

    /// Judgements that the journal had.
    #[must_use]
    pub fn known(&self) -> usize {
        self.known
    }

    /// All judgements so far.
    #[must_use]
    pub fn judgements(&self) -> &[Judgement] {
        &self.judgements
    }

    /// Writes a verdict down. `None` if there is one already.
    ///
    /// # Errors
    /// If the journal can't be written.
    pub fn record(&mut self, item: Item, finding: Finding, judged: Judged) -> Result<Option<&Judgement>> {
        if !self.open.remove(&item) {
            return Ok(None);
        }
        let candidate = &self.candidates[item.candidate];
        let judgement = Judgement {
            candidate: candidate.name.clone(),
            hash: self.hashes[item.candidate].clone(),
            round: item.round,
            verdict: finding.verdict,
            case: finding.case,
            cases: finding.cases,
            by: finding.by,
            times: finding.times,
            place: finding.place,
            message: finding.message,
            elapsed_ms: (judged.elapsed.as_secs_f64() * 1e6).round() / 1e3,
            device: judged.device,
            node: judged.node,
            mutant: candidate.origin.clone(),
        };
        self.journal.add(&judgement)?;
        self.judgements.push(judgement);
        Ok(self.judgements.last())
    }

    /// All verdicts, counted.
    #[must_use]
    pub fn summary(self, prepared: Duration, took: Duration, losses: u64, comparison: Option<Comparison>) -> Summary {
        let wanted = self.candidates.len() * self.rounds as usize;
        let (limits, device) = self.ground.map(|ground| (ground.limits, ground.device)).unwrap_or_default();
        Summary { judgements: self.judgements, wanted, known: self.known, prepared, took, losses, limits, device, comparison }
    }
}

impl Ground {
    fn conditions(&self) -> Conditions {
        let mut conditions: Conditions =
            [("compiler".to_owned(), self.compiler.clone()), ("architecture".to_owned(), format!("sm_{}", self.arch))].into();
        if !self.device.is_empty() {
            conditions.extend([("device".to_owned(), self.device.clone()), ("driver".to_owned(), self.driver.clone())]);
        }
        conditions
    }
}

/// What verdicts depend on, as far as it is known before anything is compiled.
fn conditions(spec: &Spec, settings: &Settings) -> Conditions {
    let way = match (settings.compile_only, settings.by) {
        (Some(_), _) => "compiling only",
        (None, By::Fuel) => "fuel",
        (None, By::Time) => "time",
    };
    let cases = if settings.all_cases { "all" } else { "up to the first that decides" };
    let more = [("limited by", way), ("cases", cases), ("cuinstr", env!("CARGO_PKG_VERSION"))];
    let more = more.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let measured = settings.measure.then(|| ("timed".to_owned(), "without polls".to_owned()));
    spec.conditions().into_iter().chain(more).chain(measured).collect()
}

/// Version of the driver in the system's kernel. Where that does not tell it, as in WSL, it is the version of CUDA that the driver's library brings.
#[must_use]
pub fn driver() -> String {
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
    let is_version = |word: &&str| word.split('.').count() > 1 && word.split('.').all(|part| part.parse::<u32>().is_ok());
    let of_library = || cuinstr_runtime::driver_version().map(|version| format!("CUDA {}.{}", version / 1000, version % 1000 / 10));
    text.split_whitespace().find(is_version).map(str::to_owned).or_else(of_library).unwrap_or_else(|| "unknown".to_owned())
}
