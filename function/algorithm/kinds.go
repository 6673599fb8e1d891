// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Optional kinds: the routes, and the kinds of the Prometheus Operator.
var (
	RouteGVK          = gatewayv1.SchemeGroupVersion.WithKind("HTTPRoute")
	GRPCRouteGVK      = gatewayv1.SchemeGroupVersion.WithKind("GRPCRoute")
	ServiceMonitorGVK = monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.ServiceMonitorsKind)
	PrometheusRuleGVK = monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.PrometheusRuleKind)
)
