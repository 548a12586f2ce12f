//! What the processes do in a world, and what happens to them: drawn by seed.

mod amounts;
mod calls;
mod faults;
mod partner;
mod policies;
mod scenario;
mod topology;

pub use self::amounts::{Amounts, UNITS};
pub use self::calls::{Action, CallPlan};
pub use self::faults::{Fault, FaultPlan, Handover};
pub use self::partner::{Form, PartnerPlan};
pub use self::policies::{Group, PolicyPlan};
pub use self::scenario::{Extent, Scenario, Settings};
pub use self::topology::Topology;
