//! Scores, the environment's list, and leases, without a GPU.

use cuinstr_gpus::{Error, Gpu, Leases, Mode, Preferences, Refusal, Request, Visible, Wanted, choose, rank};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::Duration;

const GIB: u64 = 1 << 30;

fn gpu(index: u32, free: u64) -> Gpu {
    let uuid = format!("GPU-{index:04}abcd-0000-0000-0000-000000000000");
    let name = "Test".to_owned();
    Gpu { index, uuid, name, total: 100 * GIB, free: free * GIB, busy: Some(0.0), processes: 0, mode: Mode::Shared, unreadable: None }
}

fn order(gpus: Vec<Gpu>, preferences: &Preferences, least: u64) -> Vec<(u32, Option<Refusal>)> {
    rank(gpus, preferences, least).into_iter().map(|rank| (rank.gpu.index, rank.refusal)).collect()
}

fn request(wanted: &str) -> Request {
    Request { wanted: wanted.parse().expect("a wish"), visible: Visible::All, ..Request::default() }
}

#[test]
fn the_gpu_with_most_free_memory_comes_first() {
    assert_eq!(order(vec![gpu(0, 10), gpu(1, 90), gpu(2, 50)], &Preferences::default(), 0), [(1, None), (2, None), (0, None)]);
}

#[test]
fn a_busy_gpu_comes_behind_an_idle_one() {
    let busy = Gpu { busy: Some(1.0), processes: 3, ..gpu(0, 90) };
    assert_eq!(order(vec![busy, gpu(1, 85)], &Preferences::default(), 0)[0].0, 1);
}

#[test]
fn equal_scores_follow_the_configured_order() {
    let preferences = Preferences { order: vec!["2".into(), "GPU-0001".into()], ..Preferences::default() };
    let order: Vec<u32> =
        order((0..4).map(|index| gpu(index, 50)).collect(), &preferences, 0).into_iter().map(|(index, _)| index).collect();
    assert_eq!(order, [2, 1, 0, 3]);
}

#[test]
fn each_reason_that_rules_a_gpu_out_is_told() {
    let preferences = Preferences { exclude: vec!["0".into()], ..Preferences::default() };
    let gpus = vec![
        gpu(0, 90),
        Gpu { mode: Mode::Prohibited, ..gpu(1, 90) },
        Gpu { mode: Mode::Exclusive, processes: 1, ..gpu(2, 90) },
        gpu(3, 5),
        Gpu { unreadable: Some("lost".into()), ..gpu(4, 90) },
        Gpu { mode: Mode::Exclusive, ..gpu(5, 20) },
    ];
    let mut found = order(gpus, &preferences, 10 * GIB);
    found.sort_by_key(|(index, _)| *index);
    let expected = [
        Some(Refusal::Excluded),
        Some(Refusal::Prohibited),
        Some(Refusal::Exclusive),
        Some(Refusal::Memory { free: 5 * GIB, wanted: 10 * GIB }),
        Some(Refusal::Unreadable("lost".into())),
        None,
    ];
    assert_eq!(found.into_iter().map(|(_, refusal)| refusal).collect::<Vec<_>>(), expected);
}

#[test]
fn the_environment_limits_the_choice_as_cuda_reads_it() {
    let gpus = || (0..4).map(|index| gpu(index, 50)).collect::<Vec<_>>();
    let kept = |value: &str| Visible::These(value.into()).keep(gpus()).map(|gpus| gpus.iter().map(|gpu| gpu.index).collect::<Vec<_>>());
    assert_eq!(kept("2,0").expect("two"), [2, 0]);
    assert_eq!(kept("GPU-0003abcd").expect("one"), [3]);
    assert_eq!(kept("1,-1,2").expect("what stands before the first unknown"), [1]);
    assert!(matches!(kept(""), Err(Error::NothingVisible(_))));
    assert!(matches!(kept("9"), Err(Error::NothingVisible(_))));
}

#[test]
fn a_name_that_fits_nothing_lists_what_there_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = choose(&request("7"), &Leases::in_folder(folder.path()), || Ok(vec![gpu(0, 5)])).expect_err("no such GPU");
    assert!(error.to_string().contains("no GPU is called `7`; this machine has 0: Test, GPU-0000abcd"), "{error}");
    assert!("first".parse::<Wanted>().is_err());
}

#[test]
fn a_lease_keeps_others_away_until_it_is_dropped() {
    let folder = tempfile::tempdir().expect("a folder");
    let leases = Leases::in_folder(&folder.path().join("new"));
    let look = || Ok(vec![gpu(0, 50), gpu(1, 40)]);
    let first = choose(&request("auto"), &leases, look).expect("a GPU");
    let second = choose(&request("auto"), &leases, look).expect("the other");
    assert_eq!((first.gpus[0].index, second.gpus[0].index), (0, 1));
    let error = choose(&request("auto"), &leases, look).expect_err("none is left");
    assert!(error.to_string().contains("leased by process"), "{error}");
    assert!(matches!(leases.refusal(&first.gpus[0].uuid), Ok(Some(Refusal::Leased(_)))));
    drop(first);
    assert!(matches!(leases.refusal("GPU-0000abcd-0000-0000-0000-000000000000"), Ok(None)));
    assert_eq!(choose(&request("auto"), &leases, look).expect("free again").gpus[0].index, 0);
}

#[test]
fn waiting_ends_when_a_gpu_becomes_free() {
    let folder = tempfile::tempdir().expect("a folder");
    let leases = Leases::in_folder(folder.path());
    let mut free = 0;
    let patient = Request { least_free: 10 * GIB, wait: Duration::from_secs(20), ..request("auto") };
    let look = || {
        free += 6;
        Ok(vec![gpu(0, free)])
    };
    assert_eq!(choose(&patient, &leases, look).expect("in the end").gpus[0].free, 12 * GIB);
}

#[test]
fn of_too_few_gpus_none_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let leases = Leases::in_folder(folder.path());
    let look = || Ok(vec![gpu(0, 50), gpu(1, 40)]);
    let error = choose(&Request { count: 3, ..request("auto") }, &leases, look).expect_err("there are two");
    assert!(matches!(error, Error::TooFew { wanted: 3, .. }));
    assert_eq!(choose(&Request { count: 2, ..request("auto") }, &leases, look).expect("both").gpus.len(), 2);
}

#[test]
fn a_link_in_the_shared_folder_is_not_followed() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("target");
    std::os::unix::fs::symlink(&target, folder.path().join(&gpu(0, 1).uuid)).expect("a link");
    let error = choose(&request("auto"), &Leases::in_folder(folder.path()), || Ok(vec![gpu(0, 50)])).expect_err("a link");
    assert!(matches!(error, Error::Lease { .. }), "{error}");
    assert!(!target.exists());
}

proptest! {
    /// However many start at once: no GPU is given twice, and none stays unused while somebody is refused.
    #[test]
    fn starts_at_once_share_nothing(gpus in 1usize..9, starts in 1usize..12) {
        let folder = tempfile::tempdir().expect("a folder");
        let leases = Leases::in_folder(folder.path());
        let look = || Ok((0..gpus as u32).map(|index| gpu(index, 50)).collect::<Vec<_>>());
        let choices: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..starts).map(|_| scope.spawn(|| choose(&request("auto"), &leases, look))).collect();
            threads.into_iter().map(|thread| thread.join().expect("a start")).collect()
        });
        let taken: Vec<u32> = choices.iter().flatten().map(|choice| choice.gpus[0].index).collect();
        prop_assert_eq!(taken.iter().collect::<BTreeSet<_>>().len(), taken.len());
        prop_assert_eq!(taken.len(), gpus.min(starts));
    }
}
