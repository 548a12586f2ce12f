//! A trace: calls, one after the other.

use super::call::Call;
use super::error::TraceError;

/// Decides all calls of a trace; `on_mistake` chooses whether to stop at a mistake.
pub(super) fn decide_all(
    trace: impl IntoIterator<Item = Result<Call, TraceError>>,
    mut on_mistake: impl FnMut(TraceError) -> Result<(), TraceError>,
    mut decide: impl FnMut(&Call) -> Result<(), TraceError>,
) -> Result<(), TraceError> {
    for call in trace {
        if let Err(mistake) = call.and_then(|call| decide(&call)) {
            on_mistake(mistake)?;
        }
    }
    Ok(())
}
