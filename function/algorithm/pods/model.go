// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/modeluri"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/podspec"
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
	// URI that the companion fetches, such as s3://…, mlflow-artifacts:… or oci://….
	URI string
	// Key is the folder of the model in a cache: lower case letters and digits.
	Key string
	// Digest and Size that the model must have. Empty and 0 compare nothing.
	Digest string
	Size   int64
}

// NewSource of a model. The registry says the URI and digest of its models; for all others the spec does, and both are empty.
func NewSource(m *v1alpha1.Model, uri, digest string) *Source {
	u := modeluri.Parse(m.URI)
	if u.Scheme != modeluri.Registry {
		uri = u.Base
	}
	sum, size, _ := strings.Cut(m.Digest, "/")
	src := &Source{URI: uri, Digest: cmp.Or(sum, digest)}
	src.Size, _ = strconv.ParseInt(size, 10, 64) // The schema allows nothing else.
	// The same name elsewhere is another model, and so is another digest or size: a cache must not answer for it.
	raw, _ := json.Marshal([]any{u.Scheme, uri, endpoint(u, uri), src.Digest, src.Size}) //nolint:errchkjson // Text and numbers always marshal.
	src.Key = compose.Hash(raw)
	return src
}

// Downloads reports whether the model is downloaded before the container starts.
func Downloads(m *v1alpha1.Model) bool {
	return !isVolume(m) && !MountsImage(m)
}

// endpoint that the spec names for a URI. Without one the credentials do.
func endpoint(u modeluri.URI, uri string) string {
	if u.Scheme != modeluri.Registry {
		return u.Endpoint
	}
	// The endpoint in the credentials is the registry's, and no server of another kind.
	switch source, _, _ := strings.Cut(uri, ":"); source {
	case modeluri.S3:
		return u.S3Endpoint
	case modeluri.GS:
		return "https://storage.googleapis.com"
	case modeluri.HF:
		return "https://huggingface.co"
	default:
		return u.Endpoint
	}
}

// isVolume reports whether the model is on a volume that exists without Capstan.
func isVolume(m *v1alpha1.Model) bool { return modeluri.Parse(m.URI).Scheme == modeluri.PVC }

// modelContainer is the init container that downloads and verifies the model, or verifies the one of a volume. None when there is
// nothing to do.
func modelContainer(in Inputs) *applycorev1.ContainerApplyConfiguration {
	m := in.Spec.Model
	switch {
	case m == nil || in.Model == nil:
		return nil
	case Downloads(m):
		return fetching(in)
	case isVolume(m) && len(expectations(in.Model)) > 0:
		args := append([]string{"verify", "--model=" + modelFolder}, expectations(in.Model)...)
		return companion(in, modelName, args, fetchMemory()).WithVolumeMounts(volumeMount(m).WithMountPath(modelFolder))
	default:
		return nil
	}
}

// fetchMemory is what a download needs for a model of any size.
func fetchMemory() resource.Quantity { return resource.MustParse("128Mi") }

func fetching(in Inputs) *applycorev1.ContainerApplyConfiguration {
	m := in.Spec.Model
	u := modeluri.Parse(m.URI)
	args := []string{"fetch", "--source=" + in.Model.URI, "--cache=" + cacheFolder, "--key=" + in.Model.Key}
	into := applycorev1.VolumeMount().WithName(VolumeModel).WithMountPath(cacheFolder)
	args = append(args, expectations(in.Model)...)
	if e := endpoint(u, in.Model.URI); e != "" {
		args = append(args, "--endpoint="+e)
	}
	if u.Region != "" {
		args = append(args, "--region="+u.Region)
	}
	mounts := []*applycorev1.VolumeMountApplyConfiguration{into}
	if m.Credentials != "" {
		args = append(args, "--credentials="+credentialsFolder)
		// What a registry answers must not lead the credentials of its readers to a server of the person who wrote the version.
		if u.Scheme == modeluri.Registry {
			args = append(args, "--registered")
			if u.Endpoint != "" {
				args = append(args, "--trusted="+u.Endpoint)
			}
		}
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
	case isVolume(m):
		v.WithPersistentVolumeClaim(applycorev1.PersistentVolumeClaimVolumeSource().
			WithClaimName(modeluri.Parse(m.URI).Claim).
			WithReadOnly(true))
	case MountsImage(in.Spec.Model):
		v.WithImage(applycorev1.ImageVolumeSource().
			WithReference(modeluri.Parse(m.URI).Reference()).
			WithPullPolicy(corev1.PullIfNotPresent))
	case m.Cache != nil:
		v.WithPersistentVolumeClaim(applycorev1.PersistentVolumeClaimVolumeSource().WithClaimName(in.CacheClaim()))
	default:
		v.WithEmptyDir(applycorev1.EmptyDirVolumeSource())
	}
	vs := []*applycorev1.VolumeApplyConfiguration{v}
	if Downloads(m) && m.Credentials != "" {
		vs = append(vs, applycorev1.Volume().
			WithName(volumeCredentials).
			WithSecret(applycorev1.SecretVolumeSource().WithSecretName(m.Credentials)))
	}
	return vs
}

// MountsImage reports whether the model is an image that the node mounts.
func MountsImage(m *v1alpha1.Model) bool {
	return m != nil && m.Delivery != v1alpha1.DeliverInitContainer && modeluri.Parse(m.URI).Scheme == modeluri.OCI
}

// ModelPath is the usual folder of the model.
const ModelPath = "/models"

// modelPlace in the container that serves.
func modelPlace(in Inputs) []podspec.Place {
	m := in.Spec.Model
	if m == nil {
		return nil
	}
	p := podspec.Place{Name: VolumeModel, Volume: VolumeModel, Path: ModelPath}
	switch {
	case isVolume(m):
		p.SubPath = modeluri.Parse(m.URI).Path
	case Downloads(m) && in.Model != nil:
		p.SubPath = in.Model.Key
	}
	return []podspec.Place{p}
}

func volumeMount(m *v1alpha1.Model) *applycorev1.VolumeMountApplyConfiguration {
	mount := applycorev1.VolumeMount().WithName(VolumeModel).WithReadOnly(true)
	if sub := modeluri.Parse(m.URI).Path; sub != "" {
		mount.WithSubPath(sub)
	}
	return mount
}
