// SPDX-License-Identifier: Apache-2.0

// Package scrape has what planners share of the objects by which the Prometheus Operator scrapes pods.
package scrape

import (
	"slices"
	"strconv"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
)

// PodMonitorGVK is the optional kind that scrapes pods without a Service.
var PodMonitorGVK = monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.PodMonitorsKind)

// Label of series with the value of a label of pods, whose name has '_' in place of other characters than letters and digits.
func Label(pod, series string) monitoringv1.RelabelConfig {
	return from("__meta_kubernetes_pod_label_"+pod, series)
}

func from(source, target string) monitoringv1.RelabelConfig {
	return monitoringv1.RelabelConfig{SourceLabels: []monitoringv1.LabelName{monitoringv1.LabelName(source)}, TargetLabel: target}
}

// Program is an endpoint for what the program of a pod serves on a port of its own. That port is not in the pod template, because a run
// cannot change it: a target is found by another port that the pod has, and its address then gets this one.
//
// Series have names of Capstan by which alerts know others' objects. What a tenant's pod serves cannot be taken for them.
func Program(found string, port int32, path string, more ...monitoringv1.RelabelConfig) monitoringv1.PodMetricsEndpoint {
	address := from("__address__", "__address__")
	address.Regex, address.Replacement = `(.+):\d+`, new("$1:"+strconv.Itoa(int(port)))
	e := AnyProgram(port, path)
	e.Port, e.RelabelConfigs = &found, slices.Concat([]monitoringv1.RelabelConfig{address, ofProgram}, more)
	return e
}

// AnyProgram is Program for pods that have no port in common: each container is a target, except one that only prepares.
func AnyProgram(port int32, path string, more ...monitoringv1.RelabelConfig) monitoringv1.PodMetricsEndpoint {
	prepares := from("__meta_kubernetes_pod_container_init", "")
	prepares.Regex, prepares.Action = "true", "drop"
	v4, v6 := from("__meta_kubernetes_pod_ip", "__address__"), from("__meta_kubernetes_pod_ip", "__address__")
	v4.Regex, v4.Replacement = "([^:]+)", new("$1:"+strconv.Itoa(int(port)))
	v6.Regex, v6.Replacement = "(.+:.+)", new("[$1]:"+strconv.Itoa(int(port)))
	return monitoringv1.PodMetricsEndpoint{
		Path: path,
		MetricRelabelConfigs: []monitoringv1.RelabelConfig{
			{SourceLabels: []monitoringv1.LabelName{"__name__"}, Regex: "capstan[_:].+", Action: "drop"},
		},
		RelabelConfigs: slices.Concat([]monitoringv1.RelabelConfig{prepares, v4, v6, ofProgram}, more),
	}
}

// ofProgram names the endpoint, which would else be the port by which a target is found.
var ofProgram = monitoringv1.RelabelConfig{TargetLabel: "endpoint", Replacement: new("metrics")}

// State is an endpoint for what a companion serves beside its state: series whose names begin with a prefix. The label for the namespace, which
// only series of the provider have, is dropped.
func State(port, path, prefix, namespace string, more ...monitoringv1.RelabelConfig) monitoringv1.PodMetricsEndpoint {
	return monitoringv1.PodMetricsEndpoint{
		Port: &port, Path: path, RelabelConfigs: more,
		MetricRelabelConfigs: []monitoringv1.RelabelConfig{
			{SourceLabels: []monitoringv1.LabelName{"__name__"}, Regex: prefix + ".+", Action: "keep"},
			{Regex: namespace, Action: "labeldrop"},
		},
	}
}
