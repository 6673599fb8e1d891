// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"maps"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applypolicyv1 "k8s.io/client-go/applyconfigurations/policy/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// Names within the composition.
const (
	namePooler                  = "pooler"
	namePoolerBudget            = "pooler-pdb"
	namePoolerCertificate       = "pooler-certificate"
	namePoolerConfig            = "pooler-config"
	namePoolerMonitor           = "pooler-monitor"
	namePoolerNetworkPolicy     = "pooler-networkpolicy"
	namePoolerServerCertificate = "pooler-server-certificate"
	namePoolerService           = "pooler-service"
)

// poolerNames are all of them.
var poolerNames = []string{
	namePooler, namePoolerBudget, namePoolerCertificate, namePoolerConfig, namePoolerMonitor, namePoolerNetworkPolicy,
	namePoolerServerCertificate, namePoolerService,
}

// Suffixes of the names of what poolers have.
const (
	suffixPooler       = "pooler"
	suffixPoolerServer = "pooler-server"
)

// labelPooler is on the pods of poolers, which members find them by, and holds the name of the Database. They do not have the
// label of its members.
const labelPooler = engine.LabelPooler

// What a pooler has unless the spec says otherwise.
const (
	defaultPoolSize   = 20
	defaultMaxClients = 1000
)

// Sizes of a pooler: clients beyond the default take memory of their own.
var (
	poolerCPU      = resource.MustParse("100m")
	poolerMemory   = resource.MustParse("128Mi")
	memoryOfClient = resource.MustParse("64Ki")
)

func (s *cluster) pooled() bool { return s.spec.Pooler != nil }

// poolRoom is the number of connections that all poolers together may have.
func (s *cluster) poolRoom() int32 { return s.engine.Connections(s.fields()) * 4 / 5 }

// pools that there are: one for each consumer in each pooler. Each has a login of its own.
func (s *cluster) pools() int32 {
	return *s.spec.Pooler.Replicas * max(1, int32(len(s.spec.Consumers))) //nolint:gosec // At most sixteen.
}

// poolSize of each pool.
func (s *cluster) poolSize() int32 {
	if n := s.spec.Pooler.PoolSize; n != nil {
		return *n
	}
	return max(1, min(defaultPoolSize, s.poolRoom()/s.pools()))
}

func checkPooler(s *cluster) []check.Problem {
	p := s.spec.Pooler
	if p == nil {
		return nil
	}
	if room := s.poolRoom(); room > 0 && s.poolSize()*s.pools() > room {
		return []check.Problem{check.Invalid("spec.pooler.poolSize", s.poolSize(), fmt.Sprintf(
			"%d poolers with as many connections for each of %d consumers are more than %d, which is four fifths of the connections of a member: "+
				"lower it, or raise spec.config.max_connections or choose a larger plan", *p.Replicas, max(1, len(s.spec.Consumers)), room))}
	}
	return nil
}

// poolers before the leader, if they are asked for.
func poolers(d *compose.Draft, s *cluster) {
	if !s.pooled() {
		for _, name := range poolerNames {
			d.Remove(name)
		}
		return
	}
	if s.Kinds[CertificateGVK] != compose.Available && s.Observed[namePooler] == nil {
		return // It could not start.
	}
	poolerCertificates(d, s)
	poolerBudget(d, s)
	poolerMonitor(d, s)
	d.Require(namePoolerNetworkPolicy, s.poolerNetworkPolicy())
	d.Require(namePoolerService, s.poolerService())
	d.Require(namePoolerConfig, applycorev1.ConfigMap(s.called(suffixPooler), s.namespace).
		WithLabels(s.labels()).
		WithData(s.engine.PoolerFiles(s.poolerInputs())))
	d.Require(namePooler, s.poolerDeployment())
}

// poolerInputs are what the configuration of poolers follows from.
func (s *cluster) poolerInputs() engine.Pooler {
	p := engine.Pooler{
		Host: s.host(suffixRW), Mode: s.spec.Pooler.Mode, PoolSize: s.poolSize(), MaxClients: *s.spec.Pooler.MaxClients,
		Limits: s.poolLimits(), ServerAuthority: s.platformSigned(),
	}
	for _, d := range s.spec.Databases {
		p.Databases = append(p.Databases, d.Name)
	}
	return p
}

// poolerSelector of the pods of poolers.
func (s *names) poolerSelector() map[string]string { return map[string]string{labelPooler: s.name} }

// poolerLabels of those pods, and of the Service that leads to them: with the label of the members it would be taken for one of
// theirs.
func (s *names) poolerLabels() map[string]string {
	l := map[string]string{labelName: s.traits.PoolerApp, labelInstance: s.name, labelManagedBy: "capstan"}
	maps.Copy(l, s.poolerSelector())
	return l
}

// poolerCertificates: one that poolers show the server, members and, unless the platform has an issuer, clients.
func poolerCertificates(d *compose.Draft, s *cluster) {
	if s.Kinds[CertificateGVK] != compose.Available {
		return
	}
	own := s.poolerLeaf(suffixPooler, s.traits.CommonNames.Pooler, s.issuedBy(suffixCA),
		[]string{"digital signature", "server auth", "client auth"})
	if !s.platformSigned() {
		d.Require(namePoolerCertificate, s.certificate(s.called(suffixPooler), own))
		if s.poolerSecretShown() != s.called(suffixPoolerServer) {
			d.Remove(namePoolerServerCertificate)
		}
		return
	}
	ref := s.issuerRef()
	d.Require(namePoolerCertificate, s.certificate(s.called(suffixPooler), own))
	d.Require(namePoolerServerCertificate, s.certificate(s.called(suffixPoolerServer), s.poolerLeaf(suffixPoolerServer, "",
		issuedByPlatform(ref), []string{"digital signature", "server auth"})))
}

// poolerSecretShown to clients by the poolers that there are.
func (s *cluster) poolerSecretShown() string {
	if o := s.Observed[namePooler]; o != nil {
		return secretOf(compose.List(o.Map(), "spec", "template", "spec", "volumes"), volumeServer)
	}
	return ""
}

// poolerSecret is the Secret with the certificate that poolers show clients.
func (s *cluster) poolerSecret() string {
	if s.platformSigned() {
		return s.called(suffixPoolerServer)
	}
	return s.called(suffixPooler)
}

// poolerLeaf is a certificate for every name that poolers are reached by.
func (s *cluster) poolerLeaf(suffix, commonName string, by issuerRef, usages []string) certificateSpec {
	c := s.leaf(suffix, commonName, by, usages)
	name := s.called(suffixPooler)
	c.DNSNames = []string{name, name + "." + s.namespace, s.host(suffixPooler), s.host(suffixPooler) + ".cluster.local", "localhost"}
	c.IPAddresses = nil
	if s.called(suffix) == s.poolerSecret() {
		c = s.withExternalNames(c)
	}
	return c
}

func poolerBudget(d *compose.Draft, s *cluster) {
	if *s.spec.Pooler.Replicas < 2 {
		d.Remove(namePoolerBudget)
		return
	}
	d.Require(namePoolerBudget, applypolicyv1.PodDisruptionBudget(s.called(suffixPooler), s.namespace).
		WithLabels(s.labels()).
		WithSpec(applypolicyv1.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
			WithSelector(applymetav1.LabelSelector().WithMatchLabels(s.poolerSelector()))))
}

func (s *names) poolerService() *applycorev1.ServiceApplyConfiguration {
	at := func(name string, number int32) *applycorev1.ServicePortApplyConfiguration {
		return applycorev1.ServicePort().WithName(name).WithProtocol(corev1.ProtocolTCP).WithPort(number).WithTargetPort(intstr.FromString(name))
	}
	return applycorev1.Service(s.called(suffixPooler), s.namespace).
		WithLabels(s.poolerLabels()).
		WithSpec(applycorev1.ServiceSpec().
			WithSelector(s.poolerSelector()).
			WithPorts(at(s.traits.App, s.traits.Ports.Client), at(portMetrics, s.traits.Ports.PoolerMetrics)))
}

// poolerMonitor lets Prometheus scrape the poolers.
func poolerMonitor(d *compose.Draft, s *cluster) {
	if !s.exports() {
		d.Remove(namePoolerMonitor)
		return
	}
	if s.Kinds[ServiceMonitorGVK] != compose.Available {
		return
	}
	d.Offer(namePoolerMonitor, compose.NewManifest(ServiceMonitorGVK.GroupVersion().String(), ServiceMonitorGVK.Kind, s.metadata(s.called(suffixPooler)),
		monitoringv1.ServiceMonitorSpec{
			Selector: metav1.LabelSelector{MatchLabels: s.poolerSelector()},
			Endpoints: []monitoringv1.Endpoint{{
				Port: portMetrics,
				RelabelConfigs: []monitoringv1.RelabelConfig{{
					SourceLabels: []monitoringv1.LabelName{"__meta_kubernetes_pod_label_capstan_dev_pooler"},
					TargetLabel:  seriesDatabase,
				}},
			}},
		}))
}

// poolerAlerts are those of a Database with poolers, whose series have these labels.
func (s *cluster) poolerAlerts(of string) []engine.Alert {
	if !s.pooled() {
		return nil
	}
	return []engine.Alert{
		{
			Name: "DatabasePoolerClientsWait", Severity: engine.SeverityTicket, For: "5m",
			Expr:    fmt.Sprintf("max by (login) (capstan_pooler_longest_wait_seconds{%s}) > 5", of),
			Summary: "Clients of Database %s of namespace %s wait for a connection of its poolers for more than 5 s: raise spec.pooler.poolSize, or look for long transactions.",
		},
		{
			Name: "DatabasePoolerClientsNearlyUsedUp", Severity: engine.SeverityTicket, For: "5m",
			Expr:    fmt.Sprintf("max(sum by (pod) (capstan_pooler_clients{%s})) / %d > 0.85", of, *s.spec.Pooler.MaxClients),
			Summary: "A pooler of Database %s of namespace %s has over 85 %% of its clients: raise spec.pooler.maxClients or spec.pooler.replicas.",
		},
	}
}

// poolersReady reports whether poolers take clients.
func poolersReady(s *state) xpv2.Condition {
	if !s.pooled() {
		return xpv2.Condition{}
	}
	o := s.Observed[namePooler]
	there, wanted := int64(0), int64(*s.spec.Pooler.Replicas)
	if o != nil {
		there = compose.Number(o.Map(), 0, "status", "readyReplicas")
	}
	switch {
	case s.asleep():
		return no(v1alpha1.ReasonPoolersPending, "poolers are stopped together with the members")
	case there == 0 && !s.leads():
		return no(v1alpha1.ReasonPoolersPending, "poolers take clients once they have seen a leader: see the condition Available")
	case there == 0:
		return no(v1alpha1.ReasonPoolersPending, fmt.Sprintf(
			"no pooler takes clients: if that lasts, see kubectl describe pods -n %s -l %s=%s", s.namespace, labelPooler, s.name))
	case there < wanted:
		return yes(v1alpha1.ReasonPoolersMissing, fmt.Sprintf(
			"a pooler takes clients, and others are missing: if that lasts, see kubectl describe pods -n %s -l %s=%s", s.namespace, labelPooler, s.name))
	default:
		return yes(v1alpha1.ReasonPooling, "every pooler takes clients")
	}
}
