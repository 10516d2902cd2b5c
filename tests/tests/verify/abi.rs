//! What the proof takes from docs/ABI.md is what the rewriter's side of it says.

use crate::report;
use cuinstr_abi::control::{CONTROL_SYMBOL, ControlBlock};

fn offset(name: &str) -> usize {
    let fields = ControlBlock::fields();
    fields.iter().find(|field| field.name == name).map(|field| field.offset).expect("the control block has that field")
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
