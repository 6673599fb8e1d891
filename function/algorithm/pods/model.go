// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// Names of the container that fetches or verifies a model, and of its volumes.
const (
	modelName         = "model"
	VolumeModel       = "model"
	volumeCredentials = "model-credentials" //nolint:gosec // The name of a volume.
)

// Where the containers of the companion have these volumes.
const (
	cacheFolder       = "/cache"
	modelFolder       = "/model"
	credentialsFolder = "/credentials"
)

// cacheGroup owns a cache, so that pods of any user fill it together.
const cacheGroup = 65532

// A Source is where a model comes from, resolved to what never changes.
type Source struct {
	// URI that the companion fetches: s3://…, mlflow-artifacts:… or oci://….
	URI string
	// Key is the folder of the model in a cache: lower case letters and digits.
	Key string
	// Digest and Size that the model must have. Empty and 0 compare nothing.
	Digest string
	Size   int64
}

// NewSource of a model. The registry says the URI and digest of its models; for all others the spec does, and both are empty.
func NewSource(m *v1alpha1.Model, uri, digest string) *Source {
	switch m.From {
	case v1alpha1.ModelFromS3:
		uri = m.S3.URI
	case v1alpha1.ModelFromOCI:
		uri = "oci://" + m.OCI.Reference
	default:
	}
	src := &Source{URI: uri, Digest: cmp.Or(m.Digest, digest)}
	if m.Size != nil {
		src.Size = *m.Size
	}
	// The same name elsewhere is another model, and so is another digest or size: a cache must not answer for it.
	raw, _ := json.Marshal([]any{m.From, uri, endpoint(m, uri), src.Digest, src.Size}) //nolint:errchkjson // Text and numbers always marshal.
	src.Key = compose.Hash(raw)
	return src
}

// Downloads reports whether the model is downloaded before the container starts.
func Downloads(m *v1alpha1.Model) bool {
	switch m.From {
	case v1alpha1.ModelFromRegistry, v1alpha1.ModelFromS3:
		return true
	case v1alpha1.ModelFromOCI:
		return m.OCI.Delivery == v1alpha1.DeliverInitContainer
	default:
		return false
	}
}

// endpoint that the spec names for a URI. Without one the credentials do.
func endpoint(m *v1alpha1.Model, uri string) string {
	switch {
	case m.From == v1alpha1.ModelFromS3:
		return m.S3.Endpoint
	case m.From == v1alpha1.ModelFromRegistry && strings.HasPrefix(uri, "s3:"):
		return m.Registry.S3Endpoint
	case m.From == v1alpha1.ModelFromRegistry:
		return m.Registry.Endpoint
	default:
		return ""
	}
}

// modelContainer is the init container that downloads and verifies the model, or verifies the one of a volume. None when there is
// nothing to do.
func modelContainer(in Inputs) *applycorev1.ContainerApplyConfiguration {
	m := in.Spec.Model
	switch {
	case m == nil || in.Model == nil:
		return nil
	case Downloads(m):
		return fetching(in)
	case m.From == v1alpha1.ModelFromVolume && len(expectations(in.Model)) > 0:
		args := append([]string{"verify", "--model=" + modelFolder}, expectations(in.Model)...)
		return companion(in, modelName, args, fetchMemory()).WithVolumeMounts(volumeMount(m.Volume).WithMountPath(modelFolder))
	default:
		return nil
	}
}

// fetchMemory is what a download needs for a model of any size.
func fetchMemory() resource.Quantity { return resource.MustParse("128Mi") }

func fetching(in Inputs) *applycorev1.ContainerApplyConfiguration {
	m := in.Spec.Model
	args := []string{"fetch", "--source=" + in.Model.URI, "--cache=" + cacheFolder, "--key=" + in.Model.Key}
	into := applycorev1.VolumeMount().WithName(VolumeModel).WithMountPath(cacheFolder)
	args = append(args, expectations(in.Model)...)
	if e := endpoint(m, in.Model.URI); e != "" {
		args = append(args, "--endpoint="+e)
	}
	if m.S3 != nil && m.S3.Region != "" {
		args = append(args, "--region="+m.S3.Region)
	}
	mounts := []*applycorev1.VolumeMountApplyConfiguration{into}
	if m.Credentials != nil {
		args = append(args, "--credentials="+credentialsFolder)
		mounts = append(mounts, applycorev1.VolumeMount().
			WithName(volumeCredentials).
			WithMountPath(credentialsFolder).
			WithReadOnly(true))
	}
	// A container that starts again is to know what it had begun itself.
	c := companion(in, modelName, args, fetchMemory()).
		WithEnv(applycorev1.EnvVar().
			WithName("POD_UID").
			WithValueFrom(applycorev1.EnvVarSource().
				WithFieldRef(applycorev1.ObjectFieldSelector().WithFieldPath("metadata.uid")))).
		WithVolumeMounts(mounts...)
	// Which models are in use changes, and what is pinned does not: so it comes from a ConfigMap, which is read when a pod
	// starts.
	if m.Cache != nil {
		c.WithEnv(applycorev1.EnvVar().
			WithName("KEEP_KEYS").
			WithValueFrom(applycorev1.EnvVarSource().
				WithConfigMapKeyRef(applycorev1.ConfigMapKeySelector().
					WithName(in.CacheClaim()).
					WithKey(KeptKey).
					WithOptional(true))))
	}
	return c
}

// KeptKey is the key of the ConfigMap with the models in use.
const KeptKey = "keep"

// expectations of a model as flags.
func expectations(src *Source) []string {
	var flags []string
	if src.Digest != "" {
		flags = append(flags, "--digest="+src.Digest)
	}
	if src.Size > 0 {
		flags = append(flags, fmt.Sprintf("--size=%d", src.Size))
	}
	return flags
}

// modelVolumes of the pod. What opens the model is mounted where it is downloaded and not where it is served.
func modelVolumes(in Inputs) []*applycorev1.VolumeApplyConfiguration {
	m := in.Spec.Model
	if m == nil {
		return nil
	}
	v := applycorev1.Volume().WithName(VolumeModel)
	switch {
	case m.From == v1alpha1.ModelFromVolume:
		v.WithPersistentVolumeClaim(applycorev1.PersistentVolumeClaimVolumeSource().
			WithClaimName(m.Volume.ClaimName).
			WithReadOnly(true))
	case MountsImage(in.Spec.Model):
		v.WithImage(applycorev1.ImageVolumeSource().
			WithReference(m.OCI.Reference).
			WithPullPolicy(corev1.PullIfNotPresent))
	case m.Cache != nil:
		v.WithPersistentVolumeClaim(applycorev1.PersistentVolumeClaimVolumeSource().WithClaimName(in.CacheClaim()))
	default:
		v.WithEmptyDir(applycorev1.EmptyDirVolumeSource())
	}
	vs := []*applycorev1.VolumeApplyConfiguration{v}
	if Downloads(m) && m.Credentials != nil {
		vs = append(vs, applycorev1.Volume().
			WithName(volumeCredentials).
			WithSecret(applycorev1.SecretVolumeSource().WithSecretName(m.Credentials.Name)))
	}
	return vs
}

// MountsImage reports whether the model is an image that the node mounts.
func MountsImage(m *v1alpha1.Model) bool {
	return m != nil && m.From == v1alpha1.ModelFromOCI && m.OCI.Delivery != v1alpha1.DeliverInitContainer
}

// modelMounts of the container that serves.
func modelMounts(in Inputs) []*applycorev1.VolumeMountApplyConfiguration {
	m := in.Spec.Model
	if m == nil {
		return nil
	}
	mount := applycorev1.VolumeMount().WithName(VolumeModel)
	switch {
	case m.From == v1alpha1.ModelFromVolume:
		mount = volumeMount(m.Volume)
	case Downloads(m) && in.Model != nil:
		mount.WithSubPath(in.Model.Key)
	}
	return []*applycorev1.VolumeMountApplyConfiguration{mount.WithMountPath(m.MountPath).WithReadOnly(true)}
}

func volumeMount(v *v1alpha1.VolumeModel) *applycorev1.VolumeMountApplyConfiguration {
	mount := applycorev1.VolumeMount().WithName(VolumeModel).WithReadOnly(true)
	if sub := path.Clean(v.Path); sub != "." {
		mount.WithSubPath(sub)
	}
	return mount
}
