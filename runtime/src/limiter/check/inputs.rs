//! The inputs of a check: the limiter, the policy and the subjects.

use std::borrow::Cow;
use std::slice;
use std::sync::Arc;

use crate::call::SubjectKeys;
use crate::decision::Reword;
use crate::error::BackendError;
use crate::limiter::Limiter;
use crate::policy::{GroupCost, Policy, UnitCost};
use crate::subject::{Subject, SubjectKey};

#[derive(Clone)]
pub(super) enum Inputs<'a> {
    /// The inputs of most calls: one subject, and nothing that has to be dropped.
    Borrowed {
        limiter: &'a Limiter,
        policy: &'a Policy,
        subject: &'a SubjectKey,
        /// What the call costs in a unit that it names.
        named: Option<GroupCost>,
    },
    // An `Arc`, because dropping `Borrowed` is then one branch. Other types need code to drop it.
    Owned(Arc<OwnedInputs<'a>>),
}

/// The inputs of any call.
#[derive(Clone)]
pub(super) struct OwnedInputs<'a> {
    limiter: Cow<'a, Limiter>,
    policy: Cow<'a, Policy>,
    subjects: CallSubjects,
    /// What the call costs in the units that it names.
    costs: Vec<UnitCost>,
    /// What gives a denial its message. It is kept here, so that most calls do not have it.
    reword: Option<Arc<Reword>>,
}

/// The subjects that the caller gave, or why nothing can be counted.
#[derive(Clone, Debug)]
pub(crate) struct CallSubjects(Result<GivenSubjects, BackendError>);

#[derive(Clone, Debug)]
struct GivenSubjects {
    /// One for each of the policy's [labels](Policy::subject_labels), in their order. The main subject stands in for
    /// missing ones.
    keys: SubjectKeys,
    /// The missing subjects, each as the bit of its index: a policy has fewer subjects than there are bits.
    missing: u64,
}

impl<'a> Inputs<'a> {
    #[inline]
    pub(super) fn new(limiter: &'a Limiter, policy: &'a Policy, subject: &'a Subject) -> Self {
        match subject.whole() {
            Some(subject) if policy.counts_only_main() => Self::Borrowed { limiter, policy, subject, named: None },
            _ => Self::owned(Cow::Borrowed(limiter), Cow::Borrowed(policy), CallSubjects::new(policy, subject)),
        }
    }

    /// Makes the inputs for the policy of a rule in shadow, which has only one subject.
    pub(super) fn of_trial(
        limiter: Limiter,
        policy: Policy,
        subject: SubjectKey,
        costs: Vec<UnitCost>,
    ) -> Inputs<'static> {
        let (limiter, policy, subjects) = (Cow::Owned(limiter), Cow::Owned(policy), CallSubjects::one(subject));
        Inputs::Owned(Arc::new(OwnedInputs { limiter, policy, subjects, costs, reword: None }))
    }

    #[cold]
    fn owned(limiter: Cow<'a, Limiter>, policy: Cow<'a, Policy>, subjects: CallSubjects) -> Self {
        Self::Owned(Arc::new(OwnedInputs { limiter, policy, subjects, costs: Vec::new(), reword: None }))
    }

    /// Returns inputs that own their data.
    pub(super) fn into_owned(self) -> Inputs<'static> {
        let OwnedInputs { limiter, policy, subjects, costs, reword } = match self {
            Self::Borrowed { limiter, policy, subject, named } => {
                OwnedInputs::borrowed(limiter, policy, subject, named)
            }
            Self::Owned(inputs) => Arc::unwrap_or_clone(inputs),
        };
        let (limiter, policy) = (Cow::Owned(limiter.into_owned()), Cow::Owned(policy.into_owned()));
        Inputs::Owned(Arc::new(OwnedInputs { limiter, policy, subjects, costs, reword }))
    }

    /// Sets what the call costs in a unit of the policy.
    #[inline]
    pub(super) fn insert_cost(&mut self, unit: &str, cost: u64) {
        if let Self::Borrowed { policy, named, .. } = self
            && let Some(place) = policy.group_of_unit(unit)
            && named.is_none_or(|named| named.place() == place)
            && let Some(cost) = GroupCost::new(place, cost)
        {
            *named = Some(cost);
        } else {
            self.insert_any_cost(unit, cost);
        }
    }

    /// Lets the call fail if its rules do not count what it costs in calls.
    #[cold]
    pub(super) fn check_cost(&mut self, cost: u64) {
        if let Err(mistake) = self.policy().check_cost(cost) {
            self.change(|inputs| inputs.subjects = CallSubjects(Err(mistake)));
        }
    }

    #[cold]
    fn insert_any_cost(&mut self, unit: &str, cost: u64) {
        self.change(|inputs| match inputs.policy.unit(unit) {
            Ok(Some(unit)) => {
                inputs.costs.retain(|(known, _)| *known != unit);
                inputs.costs.push((unit, cost));
            }
            // The cost in calls is an option of the call.
            Ok(None) => {}
            Err(mistake) => inputs.subjects = CallSubjects(Err(mistake)),
        });
    }

    /// What the call costs in the units that it names.
    pub(super) fn costs(&self) -> Cow<'_, [UnitCost]> {
        match self {
            Self::Borrowed { policy, named, .. } => named_cost(policy, *named).into(),
            Self::Owned(inputs) => Cow::Borrowed(&inputs.costs),
        }
    }

    /// Sets the subject that this label of the policy stands for.
    pub(super) fn insert_subject(&mut self, label: &str, subject: &Subject) {
        self.change(|OwnedInputs { policy, subjects, .. }| subjects.insert(policy, label, subject));
    }

    /// Sets what gives a denial its message.
    pub(super) fn set_messages(&mut self, reword: Arc<Reword>) {
        self.change(|inputs| inputs.reword = Some(reword));
    }

    /// Returns what gives a denial its message.
    #[inline]
    pub(super) fn messages(&self) -> Option<&Reword> {
        match self {
            Self::Borrowed { .. } => None,
            Self::Owned(inputs) => inputs.reword.as_deref(),
        }
    }

    fn change(&mut self, change: impl FnOnce(&mut OwnedInputs<'a>)) {
        if let Self::Borrowed { limiter, policy, subject, named } = *self {
            *self = Self::Owned(Arc::new(OwnedInputs::borrowed(limiter, policy, subject, named)));
        }
        if let Self::Owned(inputs) = self {
            change(Arc::make_mut(inputs));
        }
    }

    #[inline]
    pub(super) fn limiter(&self) -> &Limiter {
        match self {
            Self::Borrowed { limiter, .. } => limiter,
            Self::Owned(inputs) => &inputs.limiter,
        }
    }

    #[inline]
    pub(super) fn policy(&self) -> &Policy {
        match self {
            Self::Borrowed { policy, .. } => policy,
            Self::Owned(inputs) => &inputs.policy,
        }
    }

    /// The subject of each of the policy's [labels](Policy::subject_labels), in their order.
    ///
    /// # Errors
    ///
    /// The call left out a subject, or names a subject or a unit that the policy does not have, or one of its subjects is
    /// mistaken.
    pub(super) fn subjects(&self) -> Result<Cow<'_, [SubjectKey]>, BackendError> {
        match self {
            Self::Borrowed { policy, subject, .. } => Ok(repeated(policy, subject)),
            Self::Owned(inputs) => inputs.subjects.complete(&inputs.policy).map(Cow::Borrowed),
        }
    }

    /// Returns the subject that the policy lets be paused; `None` if there is none, or the call cannot be counted.
    pub(super) fn paused_subject(&self) -> Option<&SubjectKey> {
        let paused = self.policy().pause_group()?.label.as_ref();
        match self {
            Self::Borrowed { subject, .. } => paused.is_none().then_some(*subject),
            Self::Owned(inputs) => {
                let place = inputs.policy.subject_labels().position(|label| label == paused)?;
                inputs.subjects.given().ok()?.keys.get(place)
            }
        }
    }

    /// Returns the subjects, with the main one in place of those that the call left out.
    ///
    /// # Errors
    ///
    /// The call names a subject or a unit that the policy does not have, or one of its subjects is mistaken.
    pub(super) fn subjects_filled_by_main(&self) -> Result<Cow<'_, [SubjectKey]>, BackendError> {
        match self {
            Self::Borrowed { policy, subject, .. } => Ok(repeated(policy, subject)),
            Self::Owned(inputs) => inputs.subjects.given().map(|given| Cow::Borrowed(&*given.keys)),
        }
    }
}

impl<'a> OwnedInputs<'a> {
    fn borrowed(limiter: &'a Limiter, policy: &'a Policy, subject: &SubjectKey, named: Option<GroupCost>) -> Self {
        let keys = SubjectKeys::repeated(*subject, policy.groups().len());
        let subjects = CallSubjects(Ok(GivenSubjects { keys, missing: 0 }));
        let costs = named_cost(policy, named);
        let (limiter, policy) = (Cow::Borrowed(limiter), Cow::Borrowed(policy));
        Self { limiter, policy, subjects, costs, reword: None }
    }
}

/// Returns the cost in the unit of a group as any call has it.
fn named_cost(policy: &Policy, named: Option<GroupCost>) -> Vec<UnitCost> {
    let cost = |named: GroupCost| Some((policy.groups().get(named.place())?.unit.clone()?, named.cost()));
    named.and_then(cost).into_iter().collect()
}

/// Returns the only subject once for each group.
fn repeated<'s>(policy: &Policy, subject: &'s SubjectKey) -> Cow<'s, [SubjectKey]> {
    match policy.groups() {
        [_] => Cow::Borrowed(slice::from_ref(subject)),
        groups => Cow::Owned(vec![*subject; groups.len()]),
    }
}

impl CallSubjects {
    pub(crate) fn new(policy: &Policy, subject: &Subject) -> Self {
        if let Some(mistake) = subject.mistake() {
            return Self(Err(mistake.clone()));
        }
        let labels = policy.subject_labels();
        let missing = labels.enumerate().filter(|(_, label)| label.is_some()).map(|(index, _)| bit(index));
        let missing = missing.fold(0, |missing, bit| missing | bit);
        let number = policy.groups().len() + policy.trials().len();
        Self(Ok(GivenSubjects { keys: SubjectKeys::repeated(subject.key(), number), missing }))
    }

    fn one(subject: SubjectKey) -> Self {
        Self(Ok(GivenSubjects { keys: SubjectKeys::One(subject), missing: 0 }))
    }

    /// Sets the subject that this label of the policy stands for.
    pub(crate) fn insert(&mut self, policy: &Policy, label: &str, subject: &Subject) {
        let Ok(GivenSubjects { keys, missing }) = &mut self.0 else { return };
        let (key, mut is_known) = (subject.key(), false);
        for (index, (own, place)) in policy.subject_labels().zip(keys.iter_mut()).enumerate() {
            if own.is_some_and(|own| **own == *label) {
                *place = key;
                *missing &= !bit(index);
                is_known = true;
            }
        }
        if !is_known {
            *self = Self(Err(unknown_label(policy, label)));
        } else if let Some(mistake) = subject.mistake() {
            *self = Self(Err(mistake.clone()));
        }
    }

    /// The subject of each of the policy's [labels](Policy::subject_labels), in their order.
    ///
    /// # Errors
    ///
    /// The call left out a subject, or names a subject or a unit that the policy does not have, or one of its subjects is
    /// mistaken.
    pub(crate) fn complete(&self, policy: &Policy) -> Result<&[SubjectKey], BackendError> {
        let GivenSubjects { keys, missing } = self.given()?;
        if *missing == 0 { Ok(keys) } else { Err(left_out(policy, missing.trailing_zeros() as usize)) }
    }

    fn given(&self) -> Result<&GivenSubjects, BackendError> {
        self.0.as_ref().map_err(Clone::clone)
    }
}

/// The bit of a subject.
fn bit(index: usize) -> u64 {
    1 << (index % 64)
}

#[cold]
fn unknown_label(policy: &Policy, label: &str) -> BackendError {
    BackendError::misuse(format!("policy `{}` has no rule on a subject `{label}`", policy.name()))
}

#[cold]
fn left_out(policy: &Policy, missing: usize) -> BackendError {
    let label = policy.subject_labels().nth(missing).flatten().map(|label| &**label).unwrap_or_default();
    let name = policy.name();
    BackendError::misuse(format!("policy `{name}` has rules on a subject `{label}`, which the call left out"))
}
