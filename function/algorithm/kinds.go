// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	resourcev1 "k8s.io/api/resource/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Optional kinds: the route, the kinds of the Prometheus Operator, and the claims of devices, which Kubernetes has since 1.34.
var (
	RouteGVK          = gatewayv1.SchemeGroupVersion.WithKind("HTTPRoute")
	GRPCRouteGVK      = gatewayv1.SchemeGroupVersion.WithKind("GRPCRoute")
	ServiceMonitorGVK = monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.ServiceMonitorsKind)
	ClaimTemplateGVK  = resourcev1.SchemeGroupVersion.WithKind("ResourceClaimTemplate")
	PrometheusRuleGVK = monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.PrometheusRuleKind)
)
