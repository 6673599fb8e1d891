// SPDX-License-Identifier: Apache-2.0

// Package pooler composes the poolers before the leader, and those before the standbys.
package pooler

import (
	"maps"
	"strings"

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
	"github.com/capstan-dev/capstan/function/scrape"
)

// A Set of poolers is of the same size as another, and connects to other members.
type Set struct {
	// Deployment is its name within the composition, and Suffix the end of its name.
	Deployment, Suffix string

	// certificate and server are the Secrets of its certificates, by their suffixes. members is the suffix of the Service of the members that
	// it connects to, and variable is what its program gets that by.
	certificate, server, members, variable string

	selector func(*names.Names) map[string]string
	label    string
}

// The sets of poolers.
var (
	Writers = Set{
		names.Pooler, names.SuffixPooler, names.SuffixPooler, names.SuffixPoolerServer, names.SuffixRW, "CAPSTAN_LEADER",
		(*names.Names).PoolerSelector, names.LabelPooler,
	}
	Readers = Set{
		names.ReaderPooler, names.SuffixReaderPooler, names.SuffixReaderCert, names.SuffixReaderServerCert, names.SuffixRO, "CAPSTAN_STANDBYS",
		(*names.Names).ReaderPoolerSelector, names.LabelReaderPooler,
	}
)

// Sets that the spec requests.
func Sets(s *facts.Cluster) []Set {
	switch {
	case s.PooledReaders():
		return []Set{Writers, Readers}
	case s.Pooled():
		return []Set{Writers}
	}
	return nil
}

// In the set, the name within the composition of what the first set has by another name.
func (p Set) In(resource string) string {
	return p.Deployment + strings.TrimPrefix(resource, names.Pooler)
}

// kinds of objects of a set, by their names within the composition for the first set.
var kinds = []string{
	names.Pooler, names.PoolerBudget, names.PoolerCertificate, names.PoolerConfig, names.PoolerMonitor, names.PoolerNetworkPolicy,
	names.PoolerServerCertificate, names.PoolerService,
}

// Names of the objects of the set within the composition.
func (p Set) Names() []string {
	all := make([]string, 0, len(kinds))
	for _, name := range kinds {
		all = append(all, p.In(name))
	}
	return all
}

// Selector of the pods of the set, as text for commands.
func (p Set) Selector(s *facts.Cluster) string { return p.label + "=" + s.Name }

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

// Poolers in all sets. Each could connect to the same member: a standby that is promoted has connections of both for a moment.
func Poolers(s *facts.Cluster) int32 {
	return *s.Spec.Pooler.Replicas * int32(len(Sets(s))) //nolint:gosec // At most two.
}

// Pools that there are: one for each consumer in each pooler. Each has a login of its own.
func Pools(s *facts.Cluster) int32 {
	return Poolers(s) * max(1, int32(len(s.Spec.Consumers))) //nolint:gosec // At most sixteen.
}

// PoolSize of each pool.
func PoolSize(s *facts.Cluster) int32 {
	if n := s.Spec.Pooler.PoolSize; n != nil {
		return *n
	}
	return max(1, min(defaultPoolSize, PoolRoom(s)/Pools(s)))
}

// Compose the poolers that spec.pooler requests.
func Compose(d *compose.Draft, s *facts.Cluster) {
	wanted := Sets(s)
	for i, p := range []Set{Writers, Readers} {
		if i < len(wanted) {
			p.compose(d, s)
			continue
		}
		for _, name := range p.Names() {
			d.Remove(name)
		}
	}
}

func (p Set) compose(d *compose.Draft, s *facts.Cluster) {
	if s.Kinds[names.CertificateGVK] != compose.Available && s.Observed[p.Deployment] == nil {
		return // It could not start.
	}
	p.certificates(d, s)
	if *s.Spec.Pooler.Replicas < 2 {
		d.Remove(p.In(names.PoolerBudget))
	} else {
		d.Require(p.In(names.PoolerBudget), network.NewBudget(&s.Names, p.Suffix, policyv1.AlwaysAllow, p.selector(&s.Names)))
	}
	monitoring.Scrape(d, s, p.In(names.PoolerMonitor), p.Suffix, p.selector(&s.Names), scrape.Label(metaLabel.Replace(p.label), monitoring.SeriesDatabase))
	d.Require(p.In(names.PoolerNetworkPolicy), p.networkPolicy(s))
	d.Require(p.In(names.PoolerService), p.service(&s.Names))
	d.Require(p.In(names.PoolerConfig), applycorev1.ConfigMap(s.Called(p.Suffix), s.Namespace).
		WithLabels(s.Labels()).
		WithData(s.Engine.PoolerFiles(p.inputs(s))))
	d.Require(p.Deployment, p.deployment(s))
}

// metaLabel is how Prometheus writes a label of a pod.
var metaLabel = strings.NewReplacer(".", "_", "/", "_", "-", "_")

// inputs are what the configuration of poolers follows from.
func (p Set) inputs(s *facts.Cluster) engine.Pooler {
	return engine.Pooler{
		Host: s.Host(p.members), Readers: p.members == names.SuffixRO, Databases: s.Fields().Databases, Mode: s.Spec.Pooler.Mode, PoolSize: PoolSize(s),
		MaxClients: *s.Spec.Pooler.MaxClients, Limits: poolLimits(s), ServerAuthority: s.PlatformSigned(),
	}
}

// labels of the pods of poolers, and of their Service. With the label of members, the members' ServiceMonitor would select it, too.
func (p Set) labels(s *names.Names) map[string]string {
	return s.PodLabels(s.Traits.PoolerApp, p.label)
}

// certificates: one that poolers show the server, members and, unless the platform has an issuer, clients.
func (p Set) certificates(d *compose.Draft, s *facts.Cluster) {
	if s.Kinds[names.CertificateGVK] != compose.Available {
		return
	}
	d.Require(p.In(names.PoolerCertificate), p.leaf(s, p.certificate, s.Traits.CommonNames.Pooler,
		certificates.IssuedBy(&s.Names, names.SuffixCA), certificates.ServerAndClient))
	switch {
	case s.PlatformSigned():
		d.Require(p.In(names.PoolerServerCertificate), p.leaf(s, p.server, "", certificates.IssuedByPlatform(s.IssuerRef()), certificates.ServerOnly))
	case p.secretShown(s) != s.Called(p.server):
		d.Remove(p.In(names.PoolerServerCertificate))
	}
}

// secretShown to clients by the poolers that there are.
func (p Set) secretShown(s *facts.Cluster) string {
	if o := s.Observed[p.Deployment]; o != nil {
		return facts.SecretOf(compose.List(o.Map(), "spec", "template", "spec", "volumes"), names.VolumeServer)
	}
	return ""
}

// secret with the certificate that poolers show clients.
func (p Set) secret(s *facts.Cluster) string {
	if s.PlatformSigned() {
		return s.Called(p.server)
	}
	return s.Called(p.certificate)
}

// leaf is a certificate for every name that poolers are reached by. Clients outside reach those before the leader.
func (p Set) leaf(s *facts.Cluster, suffix, commonName string, by certificates.IssuerRef, usages []string) compose.Named {
	c := certificates.Leaf(&s.Names, suffix, commonName, by, usages)
	c.DNSNames = append(certificates.ServiceNames(&s.Names, p.Suffix), "localhost")
	if s.Called(suffix) == p.secret(s) && p.members == names.SuffixRW {
		c = certificates.WithExternalNames(s, c)
	}
	return certificates.New(&s.Names, s.Called(suffix), c)
}

func (p Set) service(s *names.Names) *applycorev1.ServiceApplyConfiguration {
	return applycorev1.Service(s.Called(p.Suffix), s.Namespace).
		WithLabels(p.labels(s)).
		WithSpec(applycorev1.ServiceSpec().
			WithSelector(p.selector(s)).
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
