//! Converts metrics from the Prometheus text format that `ironcurtain metrics` prints.
//!
//! - Values are cumulative since the daemon's start, so a lost request loses no data.

use crate::names;
use crate::otlp::string_attributes;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum,
};

/// A metric under construction.
struct Family<'a> {
    name: &'a str,
    kind: &'a str,
    description: &'a str,
    samples: Vec<Sample<'a>>,
}

/// A line with a value.
struct Sample<'a> {
    name: &'a str,
    labels: Vec<(&'a str, &'a str)>,
    value: f64,
}

/// Period that the values cover, in nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MetricPeriod {
    pub(crate) start: u64,
    pub(crate) now: u64,
}

/// Converts metrics from the text format. Skips metrics of an unknown type.
pub(crate) fn convert(text: &str, period: MetricPeriod) -> Vec<Metric> {
    let mut families: Vec<Family<'_>> = Vec::new();
    let mut help = ("", "");
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ').unwrap_or_default();
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            let description = if help.0 == name { help.1 } else { "" };
            families.push(Family { name, kind, description, samples: Vec::new() });
        } else if let (Some(family), Some(sample)) = (families.last_mut(), sample(line)) {
            family.samples.push(sample);
        }
    }
    families.iter().filter_map(|family| metric(family, period)).collect()
}

/// Parses `name{label="value"} 5`. Labels of IronCurtain's own metrics contain no quotes or commas.
fn sample(line: &str) -> Option<Sample<'_>> {
    let (series, value) = line.rsplit_once(' ')?;
    let (name, labels) = match series.split_once('{') {
        Some((name, labels)) => (name, labels.strip_suffix('}')?),
        None => (series, ""),
    };
    let labels = labels.split(',').filter_map(|label| {
        let (key, value) = label.split_once('=')?;
        Some((key, value.trim_matches('"')))
    });
    Some(Sample { name, labels: labels.collect(), value: value.parse().ok()? })
}

fn metric(family: &Family<'_>, period: MetricPeriod) -> Option<Metric> {
    let known = names::METRICS.iter().find(|known| known.ours == family.name);
    let (name, unit, attributes) = match known {
        Some(known) => (known.name, known.unit, known.attributes),
        None => (family.name, "", &[][..]),
    };
    let points = || {
        let point = |sample: &Sample<'_>| NumberDataPoint {
            attributes: string_attributes(&[attributes, &sample.labels].concat()),
            start_time_unix_nano: period.start,
            time_unix_nano: period.now,
            value: Some(Value::AsDouble(sample.value)),
            ..NumberDataPoint::default()
        };
        family.samples.iter().map(point).collect()
    };
    let cumulative = AggregationTemporality::Cumulative.into();
    let data = match family.kind {
        "counter" => {
            Data::Sum(Sum { data_points: points(), aggregation_temporality: cumulative, is_monotonic: true })
        }
        "gauge" => Data::Gauge(Gauge { data_points: points() }),
        "histogram" => Data::Histogram(Histogram {
            data_points: vec![histogram(family, attributes, period)],
            aggregation_temporality: cumulative,
        }),
        _ => return None,
    };
    Some(Metric {
        name: name.to_owned(),
        unit: unit.to_owned(),
        description: family.description.trim_end_matches('.').to_owned(),
        data: Some(data),
        ..Metric::default()
    })
}

/// Converts cumulative buckets to a count for each bucket.
fn histogram(family: &Family<'_>, attributes: &[(&str, &str)], period: MetricPeriod) -> HistogramDataPoint {
    let value = |suffix: &str| {
        let has_suffix = |sample: &&Sample<'_>| sample.name.strip_prefix(family.name) == Some(suffix);
        family.samples.iter().find(has_suffix).map(|sample| sample.value)
    };
    let (mut bounds, mut counts, mut previous) = (Vec::new(), Vec::new(), 0);
    for sample in family.samples.iter().filter(|sample| sample.name.ends_with("_bucket")) {
        let Some((_, limit)) = sample.labels.iter().find(|(name, _)| *name == "le") else { continue };
        bounds.extend(limit.parse::<f64>().ok().filter(|limit| limit.is_finite()));
        let cumulative = to_count(sample.value);
        counts.push(cumulative.saturating_sub(previous));
        previous = cumulative;
    }
    HistogramDataPoint {
        attributes: string_attributes(attributes),
        start_time_unix_nano: period.start,
        time_unix_nano: period.now,
        count: value("_count").map_or(previous, to_count),
        sum: value("_sum"),
        bucket_counts: counts,
        explicit_bounds: bounds,
        ..HistogramDataPoint::default()
    }
}

/// Converts a count, which the text format represents as a floating-point number.
fn to_count(value: f64) -> u64 {
    format!("{value:.0}").parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# HELP ironcurtain_calls Tool calls, by decision.
# TYPE ironcurtain_calls counter
ironcurtain_calls_total{decision=\"allow\"} 5
ironcurtain_calls_total{decision=\"deny\"} 2
# HELP ironcurtain_sessions_open Open sessions.
# TYPE ironcurtain_sessions_open gauge
ironcurtain_sessions_open 3
# HELP ironcurtain_call_seconds Time.
# TYPE ironcurtain_call_seconds histogram
ironcurtain_call_seconds_sum 1.5
ironcurtain_call_seconds_count 4
ironcurtain_call_seconds_bucket{le=\"0.1\"} 1
ironcurtain_call_seconds_bucket{le=\"1.0\"} 3
ironcurtain_call_seconds_bucket{le=\"+Inf\"} 4
# EOF
";

    #[test]
    fn each_kind_of_metric_is_converted() {
        let all = convert(TEXT, MetricPeriod { start: 1, now: 2 });
        let [calls, sessions, durations] = all.as_slice() else { panic!("{all:?}") };
        let Some(Data::Sum(sum)) = &calls.data else { panic!("{calls:?}") };
        assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
        let value = |point: &NumberDataPoint| point.value;
        assert_eq!(
            sum.data_points.iter().map(value).collect::<Vec<_>>(),
            [5.0, 2.0].map(|v| Some(Value::AsDouble(v)))
        );
        assert_eq!(sum.data_points[1].attributes, string_attributes(&[("decision", "deny")]));
        assert_eq!(
            (calls.name.as_str(), calls.description.as_str()),
            ("ironcurtain_calls", "Tool calls, by decision")
        );
        let Some(Data::Gauge(open)) = &sessions.data else { panic!("{sessions:?}") };
        assert_eq!(open.data_points[0].value, Some(Value::AsDouble(3.0)));
        assert_eq!(
            (durations.name.as_str(), durations.unit.as_str()),
            ("mcp.server.operation.duration", "s")
        );
        let Some(Data::Histogram(histogram)) = &durations.data else { panic!("{durations:?}") };
        let point = &histogram.data_points[0];
        assert_eq!((point.count, point.sum), (4, Some(1.5)));
        assert_eq!(
            (point.bucket_counts.clone(), point.explicit_bounds.clone()),
            (vec![1, 2, 1], vec![0.1, 1.0])
        );
    }
}
