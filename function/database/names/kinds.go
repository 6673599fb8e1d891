// SPDX-License-Identifier: Apache-2.0

package names

import (
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds of cert-manager.
var (
	CertificateGVK = schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"}
	IssuerGVK      = schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: KindIssuer}
)

const (
	KindIssuer = "Issuer"
)

// Kinds of the Prometheus Operator.
var (
	ServiceMonitorGVK = monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.ServiceMonitorsKind)
	PrometheusRuleGVK = monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.PrometheusRuleKind)
)
