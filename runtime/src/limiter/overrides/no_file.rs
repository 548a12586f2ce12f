//! Replaces the policies of a file if the feature `config` is off. No file is ever in force.

use std::collections::BTreeMap;

use crate::policy::{PlanCounts, Policy};

pub(super) enum NoFile {}

impl NoFile {
    pub(super) fn has_changes(&self) -> bool {
        match *self {}
    }

    pub(super) fn sets_shadow(&self) -> bool {
        match *self {}
    }

    pub(super) fn plans(&self, _: &str) -> BTreeMap<String, PlanCounts> {
        match *self {}
    }

    pub(super) fn change(&self, _: &Policy) -> Option<Policy> {
        match *self {}
    }
}
