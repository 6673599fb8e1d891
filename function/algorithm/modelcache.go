// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/algorithm/pods"
	"github.com/capstan-dev/capstan/function/compose"
)

// modelCache is the claim that all replicas share. A claim that exists never shrinks, even if the spec says so: Kubernetes would
// refuse the rest of the object with it.
func modelCache(d *compose.Draft, p *pass) {
	m := p.spec.Model
	if m == nil || m.Cache == nil {
		return
	}
	size := *m.Cache.Resources.Requests.Storage
	if o := p.Observed[names.ModelCache]; o != nil {
		claimed, err := resource.ParseQuantity(compose.Text(o.Map(), "spec", "resources", "requests", "storage"))
		if err == nil && claimed.Cmp(size) > 0 {
			size = claimed
		}
	}
	spec := applycorev1.PersistentVolumeClaimSpec().
		WithAccessModes(m.Cache.AccessModes...).
		WithResources(applycorev1.VolumeResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceStorage: size}))
	if m.Cache.StorageClassName != "" {
		spec.WithStorageClassName(m.Cache.StorageClassName)
	}
	d.Require(names.ModelCache, applycorev1.PersistentVolumeClaim(p.CacheClaim(), p.Namespace).WithLabels(p.Labels()).WithSpec(spec))
}

// modelsKept are the models of the cache that pods mount, or will. A download must not remove them to make room for another one.
func modelsKept(d *compose.Draft, p *pass) {
	if !d.Has(names.ModelCache) {
		return
	}
	var keys []string
	for _, run := range p.runs() {
		r, _ := p.record(run.Revision)
		key := mountedKey(compose.Map(r.Template, "spec"), p.CacheClaim())
		if key != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	d.Offer(names.ModelsKept, applycorev1.ConfigMap(p.CacheClaim(), p.Namespace).
		WithLabels(p.Labels()).
		WithData(map[string]string{pods.KeptKey: strings.Join(keys, ",")}))
}

// mountedKey is the key of the model that pods mount from a claim, if they do.
func mountedKey(pod map[string]any, claim string) string {
	for _, v := range compose.List(pod, "volumes") {
		volume, _ := v.(map[string]any)
		if volume["name"] == pods.VolumeModel && compose.Text(volume, "persistentVolumeClaim", "claimName") != claim {
			return ""
		}
	}
	for _, v := range compose.List(pod, "containers") {
		container, _ := v.(map[string]any)
		if container["name"] != names.Container {
			continue
		}
		for _, v := range compose.List(container, "volumeMounts") {
			if mount, _ := v.(map[string]any); mount["name"] == pods.VolumeModel {
				return compose.Text(mount, "subPath")
			}
		}
	}
	return ""
}
