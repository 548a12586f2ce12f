//! The metrics through OpenTelemetry, as docs/monitoring.md shows it.

use std::time::Duration;

use metrics_opentelemetry::{OpenTelemetryMetrics, OpenTelemetryRecorder};
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData, ResourceMetrics, ScopeMetrics};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
use tallygate::{Limiter, Policy, Rule, Subject};

#[tokio::test]
async fn counters_gauges_and_histograms_arrive_with_labels_unit_and_buckets() {
    let exporter = InMemoryMetricExporter::default();
    let provider = SdkMeterProvider::builder().with_reader(PeriodicReader::builder(exporter.clone()).build()).build();
    let mut recorder = OpenTelemetryRecorder::new(OpenTelemetryMetrics::new(provider.meter("shop")));
    recorder.set_histogram_bounds_mut(["tallygate_decision_seconds"].into_iter(), &[0.001, 0.01, 0.1]);
    let _recording = metrics::set_default_local_recorder(&recorder);
    decide().await;
    provider.force_flush().expect("the exporter takes what there is");

    let sent = exporter.get_finished_metrics().expect("what was exported");
    let all: Vec<_> = sent.iter().flat_map(ResourceMetrics::scope_metrics).flat_map(ScopeMetrics::metrics).collect();
    let metric = |name: &str| *all.iter().find(|metric| metric.name() == name).expect(name);
    let AggregatedMetrics::U64(MetricData::Sum(decisions)) = metric("tallygate_decisions_total").data() else {
        panic!("no sum")
    };
    let mut outcomes: Vec<_> = decisions
        .data_points()
        .map(|point| {
            let outcome = point.attributes().find(|label| label.key.as_str() == "outcome").expect("an outcome");
            (outcome.value.to_string(), point.value())
        })
        .collect();
    outcomes.sort();
    assert_eq!(outcomes, [("allowed".to_owned(), 1), ("limited".to_owned(), 2)]);
    let AggregatedMetrics::F64(MetricData::Histogram(seconds)) = metric("tallygate_decision_seconds").data() else {
        panic!("no histogram")
    };
    let point = seconds.data_points().next().expect("a point");
    assert_eq!((point.count(), point.bounds().collect::<Vec<_>>()), (3, vec![0.001, 0.01, 0.1]));
    assert!(matches!(metric("tallygate_tallies").data(), AggregatedMetrics::F64(MetricData::Gauge(_))));
}

async fn decide() {
    let policy = Policy::builder("otel").rule(Rule::sliding_window(1, Duration::from_secs(60))).build().unwrap();
    let limiter = Limiter::in_memory();
    for _ in 0..3 {
        let _ = limiter.check(&policy, &Subject::everyone()).await.unwrap();
    }
}
