// SPDX-License-Identifier: Apache-2.0

package database

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

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
	"github.com/capstan-dev/capstan/function/database/postgres"
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

// labelPooler is on the pods of poolers, which members find them by, and holds the
// name of the Database. They do not have the label of its members.
const labelPooler = "capstan.dev/pooler"

// What a pooler has unless the spec says otherwise.
const (
	defaultPoolers    = 2
	defaultPoolSize   = 20
	defaultMaxClients = 1000
)

// Sizes of a pooler: clients beyond the default take memory of their own.
var (
	poolerCPU       = resource.MustParse("100m")
	poolerMemory    = resource.MustParse("128Mi")
	memoryOfClient  = resource.MustParse("64Ki")
	leastPoolMemory = resource.MustParse("64Mi")
)

func (s *state) pooled() bool { return s.spec.Pooler != nil }

// defaultedPooler has all but the size of its pools, which depends on others.
func defaultedPooler(p *v1alpha1.DatabasePooler) {
	if p == nil {
		return
	}

	p.Mode = cmp.Or(p.Mode, v1alpha1.PoolTransaction)
	p.Replicas = cmp.Or(p.Replicas, new(int32(defaultPoolers)))
	p.MaxClients = cmp.Or(p.MaxClients, new(int32(defaultMaxClients)))
	p.Resources = cmp.Or(p.Resources, &v1alpha1.PoolerResources{})
	p.Resources.CPU = cmp.Or(p.Resources.CPU, &poolerCPU)

	if p.Resources.Memory == nil {
		more := int64(max(0, *p.MaxClients-defaultMaxClients)) * memoryOfClient.Value()
		p.Resources.Memory = resource.NewQuantity(poolerMemory.Value()+more, resource.BinarySI)
	}
}

// connections that a member takes.
func (s *state) connections() int32 {
	if n, err := strconv.ParseInt(string(s.spec.Config["max_connections"]), 10, 32); err == nil {
		return int32(n)
	}

	return s.size.connections
}

// poolRoom is the number of connections that all poolers together may have.
func (s *state) poolRoom() int32 { return s.connections() * 4 / 5 }

// pools that there are: one for each consumer in each pooler. Each has a login of
// its own.
func (s *state) pools() int32 {
	return *s.spec.Pooler.Replicas * max(1, int32(len(s.spec.Consumers))) //nolint:gosec // At most sixteen.
}

// poolSize of each pool.
func (s *state) poolSize() int32 {
	if n := s.spec.Pooler.PoolSize; n != nil {
		return *n
	}

	return max(1, min(defaultPoolSize, s.poolRoom()/s.pools()))
}

func checkPooler(s *state) []check.Problem {
	p := s.spec.Pooler
	if p == nil {
		return nil
	}

	ps := slices.Concat(
		check.Among("spec.pooler.mode", p.Mode, v1alpha1.PoolTransaction, v1alpha1.PoolSession),
		check.Between("spec.pooler.replicas", *p.Replicas, 1, 9),
		check.Between("spec.pooler.maxClients", *p.MaxClients, 10, 10000),
	)

	if p.PoolSize != nil {
		ps = append(ps, check.Between("spec.pooler.poolSize", *p.PoolSize, 1, 500)...)
	}

	if p.Resources.CPU.Sign() <= 0 {
		ps = append(ps, check.Invalid("spec.pooler.resources.cpu", p.Resources.CPU.String(), "must be greater than zero, for instance 100m"))
	}

	if p.Resources.Memory.Cmp(leastPoolMemory) < 0 {
		ps = append(ps, check.Invalid("spec.pooler.resources.memory", p.Resources.Memory.String(), "must be at least "+leastPoolMemory.String()))
	}

	if room := s.poolRoom(); len(ps) == 0 && room > 0 && s.poolSize()*s.pools() > room {
		ps = append(ps, check.Invalid("spec.pooler.poolSize", s.poolSize(), fmt.Sprintf(
			"%d poolers with as many connections for each of %d consumers are more than %d, which is four fifths of the connections of a member: "+
				"lower it, or raise spec.config.max_connections or choose a larger plan", *p.Replicas, max(1, len(s.spec.Consumers)), room)))
	}

	return ps
}

// poolers before the leader, if they are asked for.
func poolers(s *state) error {
	if !s.pooled() {
		for _, name := range poolerNames {
			s.letGo(name)
		}

		return nil
	}

	if s.Kinds[CertificateGVK] != compose.Available && s.Observed[namePooler] == nil {
		return nil // it could not start
	}

	s.poolerCertificates()
	s.poolerBudget()
	s.poolerMonitor()
	s.ask(namePoolerNetworkPolicy, s.poolerNetworkPolicy())
	s.ask(namePoolerService, s.poolerService())

	deployment, err := s.poolerDeployment()
	if err != nil {
		return err
	}

	s.ask(namePoolerConfig, applycorev1.ConfigMap(s.called(suffixPooler), s.namespace).
		WithLabels(s.labels()).
		WithData(map[string]string{postgres.FilePooler: s.bouncer().Config(), postgres.FilePoolerAccess: postgres.PoolerAccess}))
	s.ask(namePooler, deployment)

	return nil
}

// bouncer is what PgBouncer's configuration follows from.
func (s *state) bouncer() postgres.Pooler {
	p := postgres.Pooler{
		Host:            s.host(suffixRW),
		Mode:            postgres.PoolTransactions,
		PoolSize:        s.poolSize(),
		MaxClients:      *s.spec.Pooler.MaxClients,
		ServerAuthority: s.platformSigned(),
	}

	if s.spec.Pooler.Mode == v1alpha1.PoolSession {
		p.Mode = postgres.PoolSessions
	}

	for _, d := range s.spec.Databases {
		p.Databases = append(p.Databases, d.Name)
	}

	slices.Sort(p.Databases)
	p.Limits = s.poolLimits()

	return p
}

// poolerSelector of the pods of poolers.
func (s *state) poolerSelector() map[string]string { return map[string]string{labelPooler: s.name} }

// poolerLabels of those pods, and of the Service that leads to them: with the label
// of the members it would be taken for one of theirs.
func (s *state) poolerLabels() map[string]string {
	l := map[string]string{labelName: "pgbouncer", labelInstance: s.name, labelManagedBy: "capstan"}
	maps.Copy(l, s.poolerSelector())

	return l
}

// poolerCertificates: one that poolers show the server, members and, unless the
// platform has an issuer, clients.
func (s *state) poolerCertificates() {
	if s.Kinds[CertificateGVK] != compose.Available {
		return
	}

	own := s.poolerLeaf(suffixPooler, postgres.PoolerCommonName, issuerRef{IssuerGVK.Group, kindIssuer, s.called(suffixCA)},
		[]string{"digital signature", "server auth", "client auth"})

	if !s.platformSigned() {
		s.ask(namePoolerCertificate, s.certificate(s.called(suffixPooler), own))

		if s.poolerSecretShown() != s.called(suffixPoolerServer) {
			s.letGo(namePoolerServerCertificate)
		}

		return
	}

	ref := s.issuerRef()
	s.ask(namePoolerCertificate, s.certificate(s.called(suffixPooler), own))
	s.ask(namePoolerServerCertificate, s.certificate(s.called(suffixPoolerServer), s.poolerLeaf(suffixPoolerServer, "",
		issuerRef{IssuerGVK.Group, ref.Kind, ref.Name}, []string{"digital signature", "server auth"})))
}

// poolerSecretShown to clients by the poolers that there are.
func (s *state) poolerSecretShown() string {
	o := s.Observed[namePooler]
	if o == nil {
		return ""
	}

	for _, v := range compose.List(o.Map(), "spec", "template", "spec", "volumes") {
		if volume, ok := v.(map[string]any); ok && volume["name"] == volumeServer {
			return compose.Text(volume, "secret", "secretName")
		}
	}

	return ""
}

// poolerSecret is the Secret with the certificate that poolers show clients.
func (s *state) poolerSecret() string {
	if s.platformSigned() {
		return s.called(suffixPoolerServer)
	}

	return s.called(suffixPooler)
}

// poolerLeaf is a certificate for every name that poolers are reached by.
func (s *state) poolerLeaf(suffix, commonName string, by issuerRef, usages []string) certificateSpec {
	c := s.leaf(suffix, commonName, by, usages)
	name := s.called(suffixPooler)
	c.DNSNames = []string{name, name + "." + s.namespace, s.host(suffixPooler), s.host(suffixPooler) + ".cluster.local", "localhost"}
	c.IPAddresses = nil

	if s.called(suffix) == s.poolerSecret() {
		c = s.forOutside(c)
	}

	return c
}

func (s *state) poolerBudget() {
	if *s.spec.Pooler.Replicas < 2 {
		s.letGo(namePoolerBudget)
		return
	}

	s.ask(namePoolerBudget, applypolicyv1.PodDisruptionBudget(s.called(suffixPooler), s.namespace).
		WithLabels(s.labels()).
		WithSpec(applypolicyv1.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
			WithSelector(applymetav1.LabelSelector().WithMatchLabels(s.poolerSelector()))))
}

func (s *state) poolerService() *applycorev1.ServiceApplyConfiguration {
	at := func(name string, number int32) *applycorev1.ServicePortApplyConfiguration {
		return applycorev1.ServicePort().WithName(name).WithProtocol(corev1.ProtocolTCP).WithPort(number).WithTargetPort(intstr.FromString(name))
	}

	return applycorev1.Service(s.called(suffixPooler), s.namespace).
		WithLabels(s.poolerLabels()).
		WithSpec(applycorev1.ServiceSpec().
			WithSelector(s.poolerSelector()).
			WithPorts(at("postgres", postgres.PortPostgres), at(portMetrics, postgres.PortPoolerMetrics)))
}

// poolerMonitor lets Prometheus scrape the poolers.
func (s *state) poolerMonitor() {
	if !s.exports() {
		s.letGo(namePoolerMonitor)
		return
	}

	if s.Kinds[ServiceMonitorGVK] != compose.Available {
		return
	}

	s.offer(namePoolerMonitor, compose.NewManifest(ServiceMonitorGVK.GroupVersion().String(), ServiceMonitorGVK.Kind, s.metadata(s.called(suffixPooler)),
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

// poolerAlarms are those of a Database with poolers, whose series have these labels.
func (s *state) poolerAlarms(of string) []alarm {
	if !s.pooled() {
		return nil
	}

	return []alarm{
		{
			"DatabasePoolerClientsWait", severityTicket, fmt.Sprintf("max by (login) (capstan_pooler_longest_wait_seconds{%s}) > 5", of), "5m",
			"Clients of Database %s of namespace %s wait for a connection of its poolers for more than 5 s: raise spec.pooler.poolSize, or look for long transactions.",
		},
		{
			"DatabasePoolerClientsNearlyUsedUp", severityTicket,
			fmt.Sprintf("max(sum by (pod) (capstan_pooler_clients{%s})) / %d > 0.85", of, *s.spec.Pooler.MaxClients), "5m",
			"A pooler of Database %s of namespace %s has over 85 %% of its clients: raise spec.pooler.maxClients or spec.pooler.replicas.",
		},
	}
}

// poolersReady tells whether poolers take clients.
func poolersReady(s *state) error {
	if !s.pooled() {
		return nil
	}

	say := func(status corev1.ConditionStatus, reason xpv2.ConditionReason, message string) error {
		s.tell(v1alpha1.TypePooled, status, reason, message)
		return nil
	}

	o := s.Observed[namePooler]
	there, wanted := int64(0), int64(*s.spec.Pooler.Replicas)

	if o != nil {
		there = compose.Number(o.Map(), 0, "status", "readyReplicas")
	}

	switch {
	case s.asleep():
		return say(corev1.ConditionFalse, v1alpha1.ReasonPoolersPending, "poolers are stopped together with the members")
	case there == 0 && !s.leads():
		return say(corev1.ConditionFalse, v1alpha1.ReasonPoolersPending, "poolers take clients once they have seen a leader: see the condition Available")
	case there == 0:
		return say(corev1.ConditionFalse, v1alpha1.ReasonPoolersPending, fmt.Sprintf(
			"no pooler takes clients: if that lasts, see kubectl describe pods -n %s -l %s=%s", s.namespace, labelPooler, s.name))
	case there < wanted:
		return say(corev1.ConditionTrue, v1alpha1.ReasonPoolersMissing, fmt.Sprintf(
			"a pooler takes clients, and others are missing: if that lasts, see kubectl describe pods -n %s -l %s=%s", s.namespace, labelPooler, s.name))
	default:
		return say(corev1.ConditionTrue, v1alpha1.ReasonPooling, "every pooler takes clients")
	}
}
