// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
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
	volumeModel       = "model"
	volumeCredentials = "model-credentials" //nolint:gosec // The name of a volume.
)

// Where the containers of the companion have these volumes.
const (
	cacheFolder       = "/cache"
	modelFolder       = "/model"
	credentialsFolder = "/credentials"
)

// cacheGroup owns a cache, so that pods whatever their user fill it together.
const cacheGroup = 65532

// A source is where a model comes from, resolved to what never changes.
type source struct {
	// URI that the companion fetches: s3://…, mlflow-artifacts:… or oci://….
	URI string
	// Key is the folder of the model in a cache: lower case letters and digits.
	Key string
	// Digest and Size that the model must have. Empty and 0 compare nothing.
	Digest string
	Size   int64
}

// declaredSource of a model whose spec says it all, as it does for all but those
// of the registry.
func declaredSource(m *v1alpha1.Model) *source {
	switch m.From {
	case v1alpha1.ModelFromS3:
		return newSource(m, m.S3.URI, "")
	case v1alpha1.ModelFromOCI:
		return newSource(m, "oci://"+m.OCI.Reference, "")
	default:
		return newSource(m, "", "")
	}
}

// registeredSource of a model of the registry, with what the registry says of its
// version: the URI of its files, and its digest if it has one.
func registeredSource(m *v1alpha1.Model, uri, digest string) *source {
	return newSource(m, uri, digest)
}

func newSource(m *v1alpha1.Model, uri, digest string) *source {
	src := &source{URI: uri, Digest: cmp.Or(m.Digest, digest)}
	if m.Size != nil {
		src.Size = *m.Size
	}

	// The same name elsewhere is another model, and so is another digest or size: a
	// cache must not answer for it.
	raw, _ := json.Marshal([]any{m.From, uri, endpoint(m, uri), src.Digest, src.Size}) //nolint:errchkjson // Text and numbers always marshal.
	src.Key = compose.Hash(raw)

	return src
}

// downloads tells whether the model is downloaded before the container starts.
func downloads(m *v1alpha1.Model) bool {
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

// modelContainer is the init container that downloads and verifies the model, or
// verifies the one of a volume. None when there is nothing to do.
func modelContainer(s *state) *applycorev1.ContainerApplyConfiguration {
	m := s.spec.Model

	switch {
	case m == nil || s.model == nil:
		return nil
	case downloads(m):
		return fetching(s)
	case m.From == v1alpha1.ModelFromVolume && len(expectations(s.model)) > 0:
		args := append([]string{"verify", "--model=" + modelFolder}, expectations(s.model)...)
		return companion(s, modelName, args, fetchMemory()).WithVolumeMounts(volumeMount(m.Volume).WithMountPath(modelFolder))
	default:
		return nil
	}
}

// fetchMemory is what a download needs, whatever the size of the model.
func fetchMemory() resource.Quantity { return resource.MustParse("128Mi") }

func fetching(s *state) *applycorev1.ContainerApplyConfiguration {
	m := s.spec.Model
	args := []string{"fetch", "--source=" + s.model.URI, "--cache=" + cacheFolder, "--key=" + s.model.Key}

	into := applycorev1.VolumeMount().WithName(volumeModel).WithMountPath(cacheFolder)
	args = append(args, expectations(s.model)...)

	if e := endpoint(m, s.model.URI); e != "" {
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
	c := companion(s, modelName, args, fetchMemory()).
		WithEnv(applycorev1.EnvVar().
			WithName("POD_UID").
			WithValueFrom(applycorev1.EnvVarSource().
				WithFieldRef(applycorev1.ObjectFieldSelector().WithFieldPath("metadata.uid")))).
		WithVolumeMounts(mounts...)

	// Which models are in use changes, and what is pinned does not: so it is told
	// from elsewhere, and read when a pod starts.
	if m.Cache != nil {
		c.WithEnv(applycorev1.EnvVar().
			WithName("KEEP_KEYS").
			WithValueFrom(applycorev1.EnvVarSource().
				WithConfigMapKeyRef(applycorev1.ConfigMapKeySelector().
					WithName(s.cacheClaim()).
					WithKey(keyOfKept).
					WithOptional(true))))
	}

	return c
}

// keyOfKept is the key of the ConfigMap that tells which models are in use.
const keyOfKept = "keep"

// modelsKept tells downloads which models of the cache pods mount. To make room
// for another one must not take them away.
func modelsKept(s *state) error {
	if s.plan.Objects[nameModelCache].Object == nil {
		return nil
	}

	s.offer(nameModelsKept, applycorev1.ConfigMap(s.cacheClaim(), s.namespace).
		WithLabels(s.labels()).
		WithData(map[string]string{keyOfKept: strings.Join(s.modelsInUse(), ",")}))

	return nil
}

// modelsInUse are the keys of the models in the cache that pods mount, or will.
func (s *state) modelsInUse() []string {
	var keys []string

	for _, r := range []run{s.decision.live, s.decision.beside} {
		rec, ok := s.record(r.revision)
		if !ok {
			continue
		}

		key := mountedKey(compose.Map(rec.Template, "spec"), s.cacheClaim())
		if key != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}

	slices.Sort(keys)

	return keys
}

// mountedKey is the key of the model that pods mount from a claim, if they do.
func mountedKey(pod map[string]any, claim string) string {
	for _, v := range compose.List(pod, "volumes") {
		volume, _ := v.(map[string]any)
		if volume["name"] == volumeModel && compose.Text(volume, "persistentVolumeClaim", "claimName") != claim {
			return ""
		}
	}

	for _, c := range compose.List(pod, "containers") {
		container, _ := c.(map[string]any)
		if container["name"] != containerName {
			continue
		}

		for _, m := range compose.List(container, "volumeMounts") {
			if mount, _ := m.(map[string]any); mount["name"] == volumeModel {
				return compose.Text(mount, "subPath")
			}
		}
	}

	return ""
}

// expectations of a model as flags.
func expectations(src *source) []string {
	var flags []string

	if src.Digest != "" {
		flags = append(flags, "--digest="+src.Digest)
	}

	if src.Size > 0 {
		flags = append(flags, fmt.Sprintf("--size=%d", src.Size))
	}

	return flags
}

// modelVolumes of the pod. What opens the model is mounted where it is downloaded
// and not where it is served.
func modelVolumes(s *state) []*applycorev1.VolumeApplyConfiguration {
	m := s.spec.Model
	if m == nil {
		return nil
	}

	v := applycorev1.Volume().WithName(volumeModel)

	switch {
	case m.From == v1alpha1.ModelFromVolume:
		v.WithPersistentVolumeClaim(applycorev1.PersistentVolumeClaimVolumeSource().
			WithClaimName(m.Volume.ClaimName).
			WithReadOnly(true))
	case s.mountsImage():
		v.WithImage(applycorev1.ImageVolumeSource().
			WithReference(m.OCI.Reference).
			WithPullPolicy(corev1.PullIfNotPresent))
	case m.Cache != nil:
		v.WithPersistentVolumeClaim(applycorev1.PersistentVolumeClaimVolumeSource().WithClaimName(s.cacheClaim()))
	default:
		v.WithEmptyDir(applycorev1.EmptyDirVolumeSource())
	}

	vs := []*applycorev1.VolumeApplyConfiguration{v}
	if downloads(m) && m.Credentials != nil {
		vs = append(vs, applycorev1.Volume().
			WithName(volumeCredentials).
			WithSecret(applycorev1.SecretVolumeSource().WithSecretName(m.Credentials.Name)))
	}

	return vs
}

// mountsImage tells whether the model is an image that the node mounts.
func (s *state) mountsImage() bool {
	m := s.spec.Model
	return m != nil && m.From == v1alpha1.ModelFromOCI && m.OCI.Delivery != v1alpha1.DeliverInitContainer
}

// modelMounts of the container that serves.
func modelMounts(s *state) []*applycorev1.VolumeMountApplyConfiguration {
	m := s.spec.Model
	if m == nil {
		return nil
	}

	mount := applycorev1.VolumeMount().WithName(volumeModel)

	switch {
	case m.From == v1alpha1.ModelFromVolume:
		mount = volumeMount(m.Volume)
	case downloads(m) && s.model != nil:
		mount.WithSubPath(s.model.Key)
	}

	return []*applycorev1.VolumeMountApplyConfiguration{mount.WithMountPath(m.MountPath).WithReadOnly(true)}
}

func volumeMount(v *v1alpha1.VolumeModel) *applycorev1.VolumeMountApplyConfiguration {
	mount := applycorev1.VolumeMount().WithName(volumeModel).WithReadOnly(true)
	if sub := path.Clean(v.Path); sub != "." {
		mount.WithSubPath(sub)
	}

	return mount
}

// cacheClaim is the name of the claim of the cache.
func (s *state) cacheClaim() string { return compose.Name(s.name, "models") }

// modelCache asks for the claim that all replicas share. A claim that exists does
// not shrink, whatever the spec says: Kubernetes would refuse the rest of the
// object with it.
func modelCache(s *state) error {
	m := s.spec.Model
	if m == nil || m.Cache == nil {
		return nil
	}

	size := *m.Cache.Size
	if q, ok := claimed(s.Observed[nameModelCache]); ok && q.Cmp(size) > 0 {
		size = q
	}

	spec := applycorev1.PersistentVolumeClaimSpec().
		WithAccessModes(m.Cache.AccessMode).
		WithResources(applycorev1.VolumeResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceStorage: size}))
	if m.Cache.StorageClassName != "" {
		spec.WithStorageClassName(m.Cache.StorageClassName)
	}

	s.ask(nameModelCache, applycorev1.PersistentVolumeClaim(s.cacheClaim(), s.namespace).
		WithLabels(s.labels()).
		WithSpec(spec))

	return nil
}

// claimed size of a claim that exists.
func claimed(o compose.Object) (resource.Quantity, bool) {
	if o == nil {
		return resource.Quantity{}, false
	}

	q, err := resource.ParseQuantity(compose.Text(o.Map(), "spec", "resources", "requests", "storage"))

	return q, err == nil
}
