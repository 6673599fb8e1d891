// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/names"
)

// TakesBackups reports whether backups are taken.
func (s *Cluster) TakesBackups() bool { return s.Spec.Backup != nil && *s.Spec.Backup.Enabled }

// IssuerRef is the issuer of the certificate that clients see, if it is not the Database's own authority.
func (s *Cluster) IssuerRef() *v1alpha1.IssuerReference {
	if t := s.Spec.TLS; t != nil && t.IssuerRef != nil {
		return t.IssuerRef
	}
	return s.Settings.Database.IssuerRef
}

// PlatformSigned reports whether an issuer of the platform signs what clients see.
func (s *Cluster) PlatformSigned() bool { return s.IssuerRef() != nil }

// ServerSecret holds the certificate that clients see, and what it is checked with.
func (s *Cluster) ServerSecret() string {
	if s.PlatformSigned() {
		return s.Called(names.SuffixServer)
	}
	return s.Called(names.SuffixOfMembers)
}

// Fields of the spec that the engine checks.
func (s *Cluster) Fields() engine.Server {
	f := engine.Server{
		Version: s.Data, Image: s.Image.Version, Config: make(map[string]string, len(s.Spec.Config)), Extensions: s.Spec.Extensions,
		Connections: s.Size.Connections, SpecMemory: s.Size.Memory, SpecStorage: s.Spec.Storage,
	}
	if q := s.Spec.WALStorage; q != nil {
		f.SpecWALStorage = *q
	}
	if r := s.Spec.Resources; r != nil && r.HugePages != nil {
		if page, err := resource.ParseQuantity(r.HugePages.Size); err == nil {
			f.HugePages = engine.HugePages{Page: page.Value(), Amount: r.HugePages.Amount.Value()}
		}
	}
	for name, v := range s.Spec.Config {
		f.Config[name] = string(v)
	}
	for _, d := range s.Spec.Databases {
		f.Databases = append(f.Databases, d.Name)
	}
	f.Slots = s.Spec.Replication != nil && len(s.Spec.Replication.Slots) > 0
	if f.Slots {
		for _, slot := range s.Spec.Replication.Slots {
			f.Plugins = append(f.Plugins, slot.Plugin)
		}
	}
	for _, c := range s.Spec.Consumers {
		if c.Replication {
			f.Replicating = append(f.Replicating, c.Name)
		}
	}
	return f
}

// HugePages that the spec asks for, by the name of the resource and their amount; "" for none.
func (s *Cluster) HugePages() string {
	r := s.Spec.Resources
	if r == nil || r.HugePages == nil {
		return ""
	}
	return corev1.ResourceHugePagesPrefix + r.HugePages.Size + "=" + Canonical(r.HugePages.Amount)
}

// Role of the cloud that members and Jobs of backups open buckets as; "" for none.
func (s *Cluster) Role() string {
	if i := s.Spec.WorkloadIdentity; i != nil {
		return i.RoleARN
	}
	return ""
}

// Canonical quantity: the same for all ways to write it.
func Canonical(q resource.Quantity) string {
	c := q.DeepCopy()
	c.Add(resource.Quantity{}) // forgets how it was written
	return c.String()
}

// Exposed reports whether clients outside of the cluster have an address.
func (s *Cluster) Exposed() bool { return s.Spec.Expose != nil }

// hooks of the spec, none where it has none.
func (s *Cluster) hooks() v1alpha1.MaintenanceHooks {
	if s.Spec.Maintenance == nil || s.Spec.Maintenance.Hooks == nil {
		return v1alpha1.MaintenanceHooks{}
	}
	return *s.Spec.Maintenance.Hooks
}

// AllHooks of the spec, by field.
func (s *Cluster) AllHooks() map[string]v1alpha1.DatabaseHook {
	all, hooks := map[string]v1alpha1.DatabaseHook{}, s.hooks()
	field := func(list string, i int) string { return fmt.Sprintf("spec.maintenance.hooks.%s[%d]", list, i) }
	for i, h := range hooks.Before {
		all[field("before", i)] = h.DatabaseHook
	}
	for i, h := range hooks.After {
		all[field("after", i)] = h.DatabaseHook
	}
	for i, h := range hooks.OnSignal {
		all[field("onSignal", i)] = h
	}
	return all
}

// HasChangeHooks reports whether hooks run around a change.
func (s *Cluster) HasChangeHooks() bool {
	hooks := s.hooks()
	return len(hooks.Before)+len(hooks.After) > 0
}

// SignalHooks are the hooks that Signals may name.
func (s *Cluster) SignalHooks() []v1alpha1.DatabaseHook { return s.hooks().OnSignal }

// HookConsumer is the consumer that runs the SQL of a hook.
func (s *Cluster) HookConsumer(h v1alpha1.DatabaseHook) (v1alpha1.Consumer, bool) {
	i := slices.IndexFunc(s.Spec.Consumers, func(c v1alpha1.Consumer) bool {
		return c.Database == h.SQL.Database && c.Access == v1alpha1.ConsumerReadWrite
	})
	if i < 0 {
		return v1alpha1.Consumer{}, false
	}
	return s.Spec.Consumers[i], true
}

// Scheduling of the pods; nil without one.
func (s *Cluster) Scheduling() *v1alpha1.Scheduling {
	if s.Spec.Pod == nil {
		return nil
	}
	return &s.Spec.Pod.Scheduling
}

// PullSecrets open private registries.
func (s *Cluster) PullSecrets() []string {
	names := make([]string, 0, len(s.Spec.ImagePullSecrets))
	for _, ref := range s.Spec.ImagePullSecrets {
		names = append(names, ref.Name)
	}
	return names
}

// Exports reports whether an exporter runs beside each server.
func (s *Cluster) Exports() bool { return *s.Spec.Monitoring.Enabled }

// LogsJSON reports whether logs are lines of JSON.
func (s *Cluster) LogsJSON() bool {
	return s.Spec.Logs != nil && s.Spec.Logs.Format == v1alpha1.LogJSON
}

// Synchronous reports whether a commit waits for another member.
func (s *Cluster) Synchronous(holds bool) bool {
	// Of a spec that cannot be read nothing was set.
	return s.Copies(holds) > 1 && s.Spec.Availability != nil && s.Spec.Availability.Durability != v1alpha1.DurabilityAsynchronous
}

// Headcount is the number of members that the spec asks for. As long as no member may be removed, it is at least the number of
// members that exist.
func (s *Cluster) Headcount(holds bool) int32 {
	n := s.Spec.Replicas
	if holds {
		n = max(n, int32(len(s.Sets))) //nolint:gosec // At most nine.
	}
	return n
}

// Copies is the number of members that have the data: those that the spec asks for, and those that will be removed and exist. Each of
// them may be promoted, so a commit has to wait for another one until the last of them is gone.
func (s *Cluster) Copies(holds bool) int32 {
	return max(s.Headcount(holds), int32(len(s.Sets))) //nolint:gosec // At most nine.
}

// Pooled reports whether there are poolers before the leader.
func (s *Cluster) Pooled() bool { return s.Spec.Pooler != nil }

// PooledReaders reports whether there are poolers before the standbys, too.
func (s *Cluster) PooledReaders() bool { return s.Pooled() && s.Spec.Pooler.ReadOnly }

// ExtensionProblems are extensions that an image does not have, or that the engine does not take together.
func (s *Cluster) ExtensionProblems(f engine.Server) []check.Problem {
	var ps []check.Problem
	for i, e := range f.Extensions {
		if f.Image.Version != "" && !slices.Contains(f.Image.Extensions, e) {
			ps = append(ps, check.Problem{Reason: v1alpha1.ReasonExtensionUnavailable, Message: fmt.Sprintf(
				"spec.extensions[%d]: %q: is not in the image for version %s: choose one of %s, or ask the platform team for an image that has it",
				i, e, f.Version, strings.Join(f.Image.Extensions, ", "))})
		}
	}
	return append(ps, s.Engine.CheckExtensions(f)...)
}

// Login of a consumer.
func Login(consumer string) string { return strings.ReplaceAll(consumer, "-", "_") }

// Assigned address of the load balancer, a name or an IP address, or nothing.
func (s *Cluster) Assigned() string {
	o := s.Observed[names.External]
	if o == nil || !s.Exposed() {
		return ""
	}
	for _, v := range compose.List(o.Map(), "status", "loadBalancer", "ingress") {
		at, _ := v.(map[string]any)
		if text := cmp.Or(compose.Text(at, "ip"), compose.Text(at, "hostname")); text != "" {
			return text
		}
	}
	return ""
}

// ExternalHost that clients outside connect to, or nothing as long as there is none.
func (s *Cluster) ExternalHost() string {
	address := s.Assigned()
	if address != "" && s.Spec.Expose.Hostname != "" {
		return s.Spec.Expose.Hostname
	}
	return address
}

// ExternalEndpoint is host and port of that.
func (s *Cluster) ExternalEndpoint() string {
	if host := s.ExternalHost(); host != "" {
		return net.JoinHostPort(host, strconv.Itoa(int(s.Traits.Ports.Client)))
	}
	return ""
}
