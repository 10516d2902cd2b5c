//! Where a kernel of a pausable module begins: the block decides whether it runs.

use super::Pass;
use crate::common::block_decision::decision;
use crate::diagnostic::{Code, Diagnostic};
use crate::polls::emit::old;
use cuinstr_ptx::{CallTarget, Function, is_launch};

/// Oldest architecture with clusters.
const CLUSTERS: u32 = 90;

/// Variables that the decision needs, for the front of a module.
pub(super) fn device() -> String {
    format!(".weak .global .align 16 .b8 {}[{}];\n", cuinstr_abi::control::PAUSE_SYMBOL, size_of::<cuinstr_abi::control::PauseBlock>())
}

impl Pass<'_> {
    /// The decision as it stands around a kernel's first lines: the text in front of them, and the text behind.
    pub(super) fn decision(&mut self, function: &Function<'_>) -> (String, String) {
        let head = function.head.of(self.text);
        if head.contains(".reqnctapercluster") || head.contains(".explicitcluster") {
            let message = format!("`{}` is launched in clusters: its blocks never decline", function.name);
            let at = function.at.start as usize..function.at.end as usize;
            self.diagnostics.push(Diagnostic::new(Code::NeverPauses, message).at(at).in_function(function.name));
            return (String::new(), String::new());
        }
        let text = decision("\0", self.oldest().is_some_and(|architecture| architecture >= CLUSTERS));
        let (front, behind) = text.split_once('\0').unwrap_or_default();
        [front, behind].map(|part| old::spell(self.module.version, part.to_owned())).into()
    }

    /// Launches that the device makes: their blocks would take the request for theirs.
    pub(super) fn launches_by_the_device(&mut self, function: &Function<'_>) {
        for call in &function.calls {
            if matches!(call.target, CallTarget::Name(name) if is_launch(name)) {
                let at = function.statements[call.statement as usize].opcode as usize;
                let message = format!("`{}` launches a kernel: what the device launches can't be paused", function.name);
                self.diagnostics.push(Diagnostic::new(Code::PausableLaunches, message).at(at..at + 4).in_function(function.name));
            }
        }
    }
}
