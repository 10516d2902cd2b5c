//! Plans the checks behind barriers.

use super::planner::{Known, Owner, Planner};
use crate::common::site::{Form, Kind as SiteKind};
use crate::source::analysis::check_elision::{self, Elision};
use crate::source::plan::insertion::{Check, Insertion};
use crate::source::syntax::statement::Body;

impl Planner<'_> {
    pub(super) fn barriers(&mut self, known: &Known, owners: &[Owner], body: &Body, elision: &Elision, is_kernel: bool) {
        let fragment = known.fragment;
        for barrier in &body.barriers {
            let owner = &owners[barrier.scope];
            if owner.untouched.is_some() || owner.held {
                continue;
            }
            let call = fragment.tokens[barrier.token].start as usize..fragment.tokens[barrier.token + 3].end as usize;
            let behind = elision.behind(body, barrier.token);
            let is_unchecked = elision.unchecked.contains(&barrier.token);
            let why = behind.is_none() && is_unchecked;
            let form = if why { Form::None } else { Form::Flag };
            let site = self.site(SiteKind::Barrier, call.start, owner, form, why.then(|| check_elision::WHY.to_owned()));
            let check = Check { style: owner.style, site, in_kernel: barrier.scope == 0 && is_kernel };
            if let Some(loop_end) = behind {
                self.insert(Insertion::BehindLoop { at: fragment.tokens[loop_end].end as usize, check });
            }
            if !is_unchecked {
                self.insert(Insertion::Barrier { call, check });
            }
        }
    }
}
