//! Limits on calls at a time, and callers at once: no more bodies run than a limit allows, however they end.

mod callers;
mod dropped;
mod leases;
mod processes;
mod releases;
mod renewals;
mod under_way;
mod workers;
