//! Limits on calls at a time, and callers at once: no more bodies run than a limit allows, however they end.

mod bodies;
mod callers;
mod dropped;
mod leases;
mod processes;
mod releases;
mod renewals;
mod workers;
