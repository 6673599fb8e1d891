// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
)

// Entry of a list that has a name, or nil.
func Entry(list []any, name string) map[string]any {
	for _, v := range list {
		if entry, ok := v.(map[string]any); ok && entry["name"] == name {
			return entry
		}
	}
	return nil
}

// First entry of a list, or nil.
func First(list []any) map[string]any {
	if len(list) == 0 {
		return nil
	}
	entry, _ := list[0].(map[string]any)
	return entry
}

// SecretOf a volume of a pod template, or "".
func SecretOf(volumes []any, name string) string {
	return compose.Text(Entry(volumes, name), "secret", "secretName")
}

// KeyRef is where the key of backups is. Without a Secret backups are not encrypted.
type KeyRef struct{ Secret, Key string }

// Encrypted reports whether there is a key.
func (k KeyRef) Encrypted() bool { return k.Secret != "" }

// Text for the revision of pods that have it.
func (k KeyRef) Text() string { return k.Secret + "/" + k.Key }

// KeyIn a volume of a pod template, if there is one.
func KeyIn(volumes []any, name string) KeyRef {
	item := First(compose.List(Entry(volumes, name), "secret", "items"))
	if item == nil {
		return KeyRef{}
	}
	return KeyRef{Secret: SecretOf(volumes, name), Key: compose.Text(item, "key")}
}

// Roles of a member, recorded on its StatefulSet when it is stopped.
const (
	StoppedLeading   = "Leader"
	StoppedFollowing = "Follower"
)

// Asleep reports whether members are stopped on purpose, or are still being started again.
func (s *Cluster) Asleep() bool {
	if s.Spec.Hibernated {
		return true
	}
	for _, o := range s.Sets {
		if o.Stopped != "" || o.Replicas == 0 {
			return true
		}
	}
	return false
}

// A Set is the StatefulSet of a member, as it was observed.
type Set struct {
	letter string
	Object compose.Object

	// Revision, Restarted and version are annotations; identity is a label of the volume.
	Revision, Restarted, version, identity string

	// storage is the size that the volume was created with.
	storage string

	// ServerSecret is the Secret with the certificate that clients see.
	ServerSecret string

	// BucketSecret is the Secret that opens the bucket for backups, if it has one.
	BucketSecret string

	// BackupKey is where the key of its backups is, if they are encrypted.
	BackupKey KeyRef

	// Template is the revision of its pod template, once the controller has observed it. RolledOut reports that a pod of it has
	// been ready.
	Template  string
	RolledOut bool

	// Replicas that it asks for. Emptied reports that its controller knows of no pod. Stopped is the role of the member when it was
	// stopped on purpose.
	Replicas int64
	Emptied  bool
	Stopped  string

	// Memory of its server, in bytes, and HugePages by the name of the resource and their amount, as in hugepages-2Mi=8Gi.
	Memory    int64
	HugePages string

	// LogVolume reports that its pod has a volume for the log alone.
	LogVolume bool
}

func observeSet(letter string, o compose.Object, server string) Set {
	m := o.Map()
	v := Set{
		letter:    letter,
		Object:    o,
		Revision:  compose.Text(m, "metadata", "annotations", names.AnnotationRevision),
		Restarted: compose.Text(m, "metadata", "annotations", names.AnnotationRestarted),
		version:   compose.Text(m, "metadata", "annotations", names.AnnotationVersion),
		Stopped:   compose.Text(m, "metadata", "annotations", names.AnnotationStopped),
		Replicas:  compose.Number(m, 1, "spec", "replicas"),
	}
	if compose.Number(m, 0, "status", "observedGeneration") >= compose.Number(m, 0, "metadata", "generation") {
		v.Template = compose.Text(m, "status", "updateRevision")
		v.RolledOut = cmp.Or(compose.Text(m, "status", "currentRevision"), v.Template) == v.Template
		v.Emptied = compose.Number(m, 0, "status", "replicas") == 0
	}
	claim := First(compose.List(m, "spec", "volumeClaimTemplates"))
	v.identity = compose.Text(claim, "metadata", "labels", observev1alpha1.LabelIdentity)
	v.storage = compose.Text(claim, "spec", "resources", "requests", "storage")
	container := Entry(compose.List(m, "spec", "template", "spec", "containers"), server)
	if q, err := resource.ParseQuantity(compose.Text(container, "resources", "limits", "memory")); err == nil {
		v.Memory = q.Value()
	}
	for name, q := range compose.Map(container, "resources", "limits") {
		if amount, ok := q.(string); ok && strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) {
			v.HugePages = name + "=" + amount
		}
	}
	volumes := compose.List(m, "spec", "template", "spec", "volumes")
	v.LogVolume = Entry(volumes, names.VolumeWAL) != nil
	v.ServerSecret, v.BucketSecret, v.BackupKey = SecretOf(volumes, names.VolumeServer), SecretOf(volumes, names.VolumeBackup), KeyIn(volumes, names.VolumeBackupKey)
	return v
}
