//! The meters of a paced call.

use crate::decision::{Meter, Permit};

/// The meters of a paced call, by the units of [`Pace::metered`](super::Pace::metered). They are in the extensions of its response.
///
/// # Examples
///
/// ```
/// use tallygate::client::Meters;
///
/// /// The answer of a model says in its body how many tokens the call has used.
/// fn count<B>(response: &http::Response<B>, tokens: u64) {
///     if let Some(meter) = response.extensions().get::<Meters>().and_then(|meters| meters.get("tokens")) {
///         meter.add(tokens);
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Meters(Vec<(String, Meter)>);

impl Meters {
    /// Takes the meters of a call for those of these units that can be settled; `None` if none can.
    pub(super) fn take(permit: &mut Permit, units: &[String]) -> Option<Self> {
        let meters: Vec<_> = units.iter().filter_map(|unit| Some((unit.clone(), permit.meter(unit).ok()?))).collect();
        (!meters.is_empty()).then_some(Self(meters))
    }

    /// Returns the meter of a unit; `None` if the pace does not meter it, or if the call has a cost of 0 in calls.
    #[must_use]
    pub fn get(&self, unit: &str) -> Option<&Meter> {
        self.0.iter().find(|(known, _)| known == unit).map(|(_, meter)| meter)
    }
}
