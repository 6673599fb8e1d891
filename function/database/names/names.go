// SPDX-License-Identifier: Apache-2.0

// Package names has the names of everything that belongs to a Database: objects, members, labels, annotations and kinds.
package names

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// Names of everything that one generation of a Database has.
type Names struct {
	Name, Namespace string

	// Identity of the Database, empty until it is known.
	Identity string

	Generation int
	Traits     engine.Traits

	// Preview that the Database belongs to, or empty. Its volumes and Secrets go with it.
	Preview string
}

// Letters of the members, in the order they are made.
var Letters = strings.Split("abcdefghij", "")

// Called is the name of an object of the Database.
func (s *Names) Called(suffix string) string { return s.Name + "-" + suffix }

// Base that everything of this generation of the Database is found by: the value of the label of the Database on its pods and
// volumes. No Database has a dot in its name, so the base of a later generation is no other Database's name.
func (s *Names) Base() string { return BaseOf(s.Name, s.Generation) }

// BaseOf a generation of a Database.
func BaseOf(name string, generation int) string {
	if generation <= 1 {
		return name
	}
	return fmt.Sprintf("%s.g%d", name, generation)
}

// OwnMembers is the name of what the members of this generation have for themselves: their account, whose name says which pods
// they may label, and their configuration.
func (s *Names) OwnMembers() string { return s.Base() + "-" + SuffixOfMembers }

// In this generation, the name within the composition of what each generation has.
func (s *Names) In(resource string) string {
	if s.Generation <= 1 {
		return resource
	}
	return fmt.Sprintf("%s-g%d", resource, s.Generation)
}

// MemberPrefix begins the names of members: of their StatefulSets, and so of pods and volumes, whose names have no dots.
func (s *Names) MemberPrefix() string {
	if s.Generation <= 1 {
		return s.Name + "-"
	}
	return fmt.Sprintf("%s-g%d-", s.Name, s.Generation)
}

// Member of a letter.
func (s *Names) Member(letter string) string { return s.MemberPrefix() + letter }

// Scope that members keep their objects under. It has a part of the identity, so that a later Database of the same name finds nothing.
func (s *Names) Scope() string {
	if s.Identity == "" {
		return ""
	}
	return s.ScopeOf(s.Generation)
}

// ScopeOf a generation, once there is an identity.
func (s *Names) ScopeOf(generation int) string {
	return BaseOf(s.Name, generation) + "-" + s.Identity[:min(8, len(s.Identity))]
}

// Host of a Service of the Database, from everywhere in the cluster.
func (s *Names) Host(suffix string) string {
	return fmt.Sprintf("%s.%s.svc", s.Called(suffix), s.Namespace)
}

// PodHost of a member.
func (s *Names) PodHost(letter string) string {
	return fmt.Sprintf("%s-0.%s", s.Member(letter), s.Host(SuffixPods))
}

// Labels of every composed object.
func (s *Names) Labels() map[string]string {
	return s.PodLabels(s.Traits.App, observev1alpha1.LabelDatabase)
}

// PodLabels of pods of an app that are not members. The label, which policies select by, holds the name of the Database.
func (s *Names) PodLabels(app, label string) map[string]string {
	return map[string]string{LabelName: app, LabelInstance: s.Name, LabelManagedBy: "capstan", label: s.Name}
}

// OtherPods are the labels of the Database's pods that are no members, by what they are.
func (s *Names) OtherPods() map[string]map[string]string {
	return map[string]map[string]string{
		PodsBackup: s.PodLabels(s.Traits.App+"-backup", LabelBackupOf), PodsVerify: s.PodLabels(s.Traits.App+"-verify", LabelVerificationOf),
		PodsHook: s.PodLabels(s.Traits.App+"-hook", LabelHookOf), PodsRepository: s.PodLabels(s.Traits.App+"-repository", LabelRepositoryOf),
		PodsSnapshot: s.PodLabels(s.Traits.App+"-snapshot", LabelSnapshotOf),
		PodsPooler:   s.PodLabels(s.Traits.PoolerApp, LabelPooler), PodsReaderPooler: s.PodLabels(s.Traits.PoolerApp, LabelReaderPooler),
	}
}

// Pods of a Database that are no members.
const (
	PodsBackup       = "backups"
	PodsVerify       = "verifications of backups"
	PodsHook         = "hooks"
	PodsRepository   = "the host of the backup volume"
	PodsSnapshot     = "snapshots"
	PodsPooler       = "poolers"
	PodsReaderPooler = "poolers of readers"
)

// OwnLabels of what belongs to one generation.
func (s *Names) OwnLabels() map[string]string {
	l := s.Labels()
	l[observev1alpha1.LabelDatabase] = s.Base()
	return l
}

// Selector of the pods of all members of this generation.
func (s *Names) Selector() map[string]string {
	return map[string]string{observev1alpha1.LabelDatabase: s.Base()}
}

// Metadata of an object of the Database.
func (s *Names) Metadata(name string) *applymetav1.ObjectMetaApplyConfiguration {
	return applymetav1.ObjectMeta().WithName(name).WithNamespace(s.Namespace).WithLabels(s.Labels())
}

// Disposable labels mark data and passwords that go with their Preview: the policy capstan-database-data lets them. Of any other Database
// there are none.
func (s *Names) Disposable() map[string]string {
	if s.Preview == "" {
		return nil
	}
	return map[string]string{v1alpha1.LabelPreview: s.Preview}
}

// Hashed namespace and name.
func (s *Names) Hashed() uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.Namespace + "/" + s.Name))
	return h.Sum32()
}

// HookJob of an id runs that hook.
func (s *Names) HookJob(id string) string { return s.Called(HookPrefix + id) }

// WALClaim is the volume claim of a member's log, if it has a volume of its own. The provider makes it.
func (s *Names) WALClaim(letter string) string { return VolumeWAL + "-" + s.Member(letter) + "-0" }

// DataClaim is the volume claim of a member's data, which its StatefulSet makes or finds.
func (s *Names) DataClaim(letter string) string {
	return VolumeData + "-" + s.Member(letter) + "-0"
}

// MemberLabels of what belongs to one member.
func (s *Names) MemberLabels(letter string) map[string]string {
	l := s.OwnLabels()
	l[observev1alpha1.LabelMember] = s.Member(letter)
	return l
}

// ofGenerations are the names within the composition of what each generation has, beside its members.
var ofGenerations = []string{Topology, Config, DCS, ServiceAccount, RoleBinding, VolumeClaim}

// GenerationOf an object, if it belongs to one.
func GenerationOf(resource string) (int, bool) {
	name, generation := resource, 1
	if i := strings.LastIndex(resource, "-g"); i > 0 {
		if n, err := strconv.Atoi(resource[i+2:]); err == nil && n > 1 {
			name, generation = resource[:i], n
		}
	}
	letter, member := strings.CutPrefix(name, MemberPrefix)
	return generation, slices.Contains(ofGenerations, name) || member && slices.Contains(Letters, letter)
}

// PoolerSelector of the pods of poolers.
func (s *Names) PoolerSelector() map[string]string { return map[string]string{LabelPooler: s.Name} }

// ReaderPoolerSelector of the pods of poolers before the standbys.
func (s *Names) ReaderPoolerSelector() map[string]string {
	return map[string]string{LabelReaderPooler: s.Name}
}

// RepositorySelector of the pod that serves the volume.
func (s *Names) RepositorySelector() map[string]string {
	return map[string]string{LabelRepositoryOf: s.Name}
}

// LetterOf a member, or "" for a pod that is none of this generation.
func (s *Names) LetterOf(member string) string {
	letter, ok := strings.CutPrefix(member, s.MemberPrefix())
	if !ok || !slices.Contains(Letters, letter) {
		return ""
	}
	return letter
}
