//! The gauges of this process, for what runs too long to keep every metric.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

/// Keeps gauges, and forgets all other metrics.
#[derive(Clone, Default)]
pub struct Gauges(Arc<Mutex<Vec<Known>>>);

/// The key of a gauge, and its value.
type Known = (Key, Arc<AtomicU64>);

impl Gauges {
    /// Installs a recorder for this process.
    #[must_use]
    pub fn install() -> Self {
        let gauges = Self::default();
        metrics::set_global_recorder(gauges.clone()).expect("there is no other recorder");
        gauges
    }

    /// Returns the sum of a gauge over all its labels.
    #[must_use]
    pub fn sum(&self, name: &str) -> f64 {
        let gauges = self.0.lock().unwrap();
        let named = gauges.iter().filter(|(key, _)| key.name() == name);
        named.map(|(_, value)| f64::from_bits(value.load(Ordering::Relaxed))).sum()
    }
}

impl Recorder for Gauges {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        let mut gauges = self.0.lock().unwrap();
        let known = gauges.iter().find(|(other, _)| other == key).map(|(_, value)| Arc::clone(value));
        Gauge::from_arc(known.unwrap_or_else(|| {
            let value = Arc::default();
            gauges.push((key.clone(), Arc::clone(&value)));
            value
        }))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}
