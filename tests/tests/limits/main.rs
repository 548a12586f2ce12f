//! What a limit admits and answers, on every backend: by the model, by every algorithm, with whatever a call may ask for.

mod algorithms;
mod around;
mod behaviour;
mod denial_cache;
mod denied;
mod flood;
mod linearizable;
mod model;
mod races;
mod schedule;
mod simulation;
mod waiting;
mod waiting_bans;
mod warnings;
