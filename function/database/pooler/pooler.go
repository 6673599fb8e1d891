// SPDX-License-Identifier: Apache-2.0

// Package pooler composes the poolers before the leader.
package pooler

import (
	"maps"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/access"
	"github.com/capstan-dev/capstan/function/database/certificates"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/monitoring"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/network"
)

// PoolerNames are all of them.
var PoolerNames = []string{
	names.Pooler, names.PoolerBudget, names.PoolerCertificate, names.PoolerConfig, names.PoolerMonitor, names.PoolerNetworkPolicy,
	names.PoolerServerCertificate, names.PoolerService,
}

// What a pooler has unless the spec says otherwise.
const (
	defaultPoolSize   = 20
	DefaultMaxClients = 1000
)

// Sizes of a pooler: clients beyond the default take memory of their own.
var (
	CPU            = resource.MustParse("100m")
	Memory         = resource.MustParse("128Mi")
	MemoryOfClient = resource.MustParse("64Ki")
)

// PoolRoom is the number of connections that all poolers together may have.
func PoolRoom(s *facts.Cluster) int32 { return s.Engine.Connections(s.Fields()) * 4 / 5 }

// Pools that there are: one for each consumer in each pooler. Each has a login of its own.
func Pools(s *facts.Cluster) int32 {
	return *s.Spec.Pooler.Replicas * max(1, int32(len(s.Spec.Consumers))) //nolint:gosec // At most sixteen.
}

// PoolSize of each pool.
func PoolSize(s *facts.Cluster) int32 {
	if n := s.Spec.Pooler.PoolSize; n != nil {
		return *n
	}
	return max(1, min(defaultPoolSize, PoolRoom(s)/Pools(s)))
}

// Compose the poolers before the leader, if spec.pooler requests them.
func Compose(d *compose.Draft, s *facts.Cluster) {
	if !s.Pooled() {
		for _, name := range PoolerNames {
			d.Remove(name)
		}
		return
	}
	if s.Kinds[names.CertificateGVK] != compose.Available && s.Observed[names.Pooler] == nil {
		return // It could not start.
	}
	poolerCertificates(d, s)
	if *s.Spec.Pooler.Replicas < 2 {
		d.Remove(names.PoolerBudget)
	} else {
		d.Require(names.PoolerBudget, network.NewBudget(&s.Names, names.SuffixPooler, policyv1.AlwaysAllow, s.PoolerSelector()))
	}
	monitoring.Scrape(d, s, names.PoolerMonitor, names.SuffixPooler, s.PoolerSelector(), monitoring.SeriesLabel(monitoring.SeriesDatabase, "capstan_dev_pooler"))
	d.Require(names.PoolerNetworkPolicy, poolerNetworkPolicy(s))
	d.Require(names.PoolerService, poolerService(&s.Names))
	d.Require(names.PoolerConfig, applycorev1.ConfigMap(s.Called(names.SuffixPooler), s.Namespace).
		WithLabels(s.Labels()).
		WithData(s.Engine.PoolerFiles(poolerInputs(s))))
	d.Require(names.Pooler, poolerDeployment(s))
}

// poolerInputs are what the configuration of poolers follows from.
func poolerInputs(s *facts.Cluster) engine.Pooler {
	return engine.Pooler{
		Host: s.Host(names.SuffixRW), Databases: s.Fields().Databases, Mode: s.Spec.Pooler.Mode, PoolSize: PoolSize(s),
		MaxClients: *s.Spec.Pooler.MaxClients, Limits: poolLimits(s), ServerAuthority: s.PlatformSigned(),
	}
}

// poolerLabels of the pods of poolers, and of their Service. With the label of members, the members' ServiceMonitor would select
// it, too.
func poolerLabels(s *names.Names) map[string]string {
	return s.PodLabels(s.Traits.PoolerApp, names.LabelPooler)
}

// poolerCertificates: one that poolers show the server, members and, unless the platform has an issuer, clients.
func poolerCertificates(d *compose.Draft, s *facts.Cluster) {
	if s.Kinds[names.CertificateGVK] != compose.Available {
		return
	}
	d.Require(names.PoolerCertificate, poolerLeaf(s, names.SuffixPooler, s.Traits.CommonNames.Pooler,
		certificates.IssuedBy(&s.Names, names.SuffixCA), certificates.ServerAndClient))
	switch {
	case s.PlatformSigned():
		d.Require(names.PoolerServerCertificate, poolerLeaf(s, names.SuffixPoolerServer, "", certificates.IssuedByPlatform(s.IssuerRef()), certificates.ServerOnly))
	case poolerSecretShown(s) != s.Called(names.SuffixPoolerServer):
		d.Remove(names.PoolerServerCertificate)
	}
}

// poolerSecretShown to clients by the poolers that there are.
func poolerSecretShown(s *facts.Cluster) string {
	if o := s.Observed[names.Pooler]; o != nil {
		return facts.SecretOf(compose.List(o.Map(), "spec", "template", "spec", "volumes"), names.VolumeServer)
	}
	return ""
}

// poolerSecret is the Secret with the certificate that poolers show clients.
func poolerSecret(s *facts.Cluster) string {
	if s.PlatformSigned() {
		return s.Called(names.SuffixPoolerServer)
	}
	return s.Called(names.SuffixPooler)
}

// poolerLeaf is a certificate for every name that poolers are reached by.
func poolerLeaf(s *facts.Cluster, suffix, commonName string, by certificates.IssuerRef, usages []string) compose.Named {
	c := certificates.Leaf(&s.Names, suffix, commonName, by, usages)
	c.DNSNames = append(certificates.ServiceNames(&s.Names, names.SuffixPooler), "localhost")
	if s.Called(suffix) == poolerSecret(s) {
		c = certificates.WithExternalNames(s, c)
	}
	return certificates.New(&s.Names, s.Called(suffix), c)
}

func poolerService(s *names.Names) *applycorev1.ServiceApplyConfiguration {
	return applycorev1.Service(s.Called(names.SuffixPooler), s.Namespace).
		WithLabels(poolerLabels(s)).
		WithSpec(applycorev1.ServiceSpec().
			WithSelector(s.PoolerSelector()).
			WithPorts(network.ServicePort(s.Traits.App, s.Traits.Ports.Client), network.ServicePort(names.PortMetrics, s.Traits.Ports.PoolerMetrics)))
}

// poolLimits of databases with a consumer that has two logins: each login has a pool, and an overlap would open more connections
// than the server was sized for.
func poolLimits(s *facts.Cluster) map[string]int32 {
	limits, alternating := map[string]int32{}, map[string]bool{}
	for _, c := range s.Spec.Consumers {
		limits[c.Database] += PoolSize(s)
		alternating[c.Database] = alternating[c.Database] || access.HasTwoLogins(s, c)
	}
	maps.DeleteFunc(limits, func(d string, _ int32) bool { return !alternating[d] })
	return limits
}
