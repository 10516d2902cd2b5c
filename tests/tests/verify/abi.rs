//! What the proof takes from docs/ABI.md is what the rewriter's side of it says.

use crate::report;
use cuinstr::verify::verify_ptx;
use cuinstr_abi::control::{CONTROL_SYMBOL, ControlBlock, Field, SITE_SLOTS, SiteCount, StopRecord};

fn offset(name: &str) -> usize {
    offset_in(&ControlBlock::fields(), name)
}

fn offset_in(fields: &[Field], name: &str) -> usize {
    fields.iter().find(|field| field.name == name).map(|field| field.offset).expect("there is a field of that name")
}

/// The assembly of a stop, a look and a kernel's end (`instrument/src/source/emit/prelude`) names words by their numbers.
#[test]
fn the_words_that_the_preludes_assembly_names_by_number_lie_there() {
    let words = [
        ("action", 4),
        ("launch", 8),
        ("flag", 16),
        ("timeout_ns", 24),
        ("start_ns", 32),
        ("host_record", 56),
        ("record", 64),
        ("own_record", 72),
    ];
    for (name, number) in words {
        assert_eq!(offset(name), number, "{name}");
    }
    let record = StopRecord::fields();
    let words = [
        ("claimed", 0),
        ("published", 4),
        ("site", 8),
        ("why", 16),
        ("late", 20),
        ("block", 24),
        ("thread", 36),
        ("start_ns", 48),
        ("elapsed_ns", 64),
        ("elapsed_cycles", 72),
        ("unlisted", 88),
        ("sites", 96),
    ];
    for (name, number) in words {
        assert_eq!(offset_in(&record, name), number, "{name}");
    }
    assert_eq!((size_of::<SiteCount>(), SITE_SLOTS), (16, 64));
    assert_eq!((offset_in(&SiteCount::fields(), "site"), offset_in(&SiteCount::fields(), "threads")), (0, 8));
}

#[test]
fn the_words_of_the_control_block_lie_where_the_proof_looks_for_them() {
    let (flag, launch) = (offset("flag"), offset("launch"));
    let body = format!(
        "$L:\n\tld.global.u64 %rd1, [{CONTROL_SYMBOL}+{flag}];\n\tld.relaxed.sys.u32 %r1, [%rd1];\n\tld.global.u32 %r2, [{CONTROL_SYMBOL}+{launch}];\n\
         \tsetp.eq.s32 %p1, %r1, %r2;\n\t@%p1 exit;\n\tbra $L;"
    );
    assert!(report(&body).holds(), "{body}");
    assert!(!report(&body.replace(&format!("+{flag}]"), "+24]")).holds());
}

#[test]
fn a_control_block_has_room_for_what_polls_read() {
    let faults = |bytes: usize| {
        let text = ".version 9.0\n.target sm_90\n.address_size 64\n.weak .global .align 8 .b8";
        verify_ptx(&format!("{text} {CONTROL_SYMBOL}[{bytes}];\n.visible .entry k() {{ ret; }}\n")).faults.len()
    };
    let bytes = offset("flag").max(offset("launch")) + size_of::<u64>();
    assert_eq!([bytes - 1, bytes, size_of::<ControlBlock>()].map(faults), [1, 0, 0]);
}
