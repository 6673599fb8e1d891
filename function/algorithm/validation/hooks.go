// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/podspec"
	podvalidation "github.com/capstan-dev/capstan/function/podspec/validation"
)

// Hooks returns what is wrong with spec.lifecycle.hooks beyond the schema: addresses that the provider would refuse, as far as the
// URL shows them, and containers. Written is the spec as the user wrote it, which still has the fields that no type has.
func Hooks(s v1alpha1.AlgorithmSpec, written map[string]any) field.ErrorList {
	if s.Lifecycle == nil {
		return nil
	}
	var errs field.ErrorList
	at, items := spec.Child("lifecycle", "hooks"), compose.List(written, "lifecycle", "hooks")
	for i, h := range s.Lifecycle.Hooks {
		at := at.Index(i)
		if h.URL != "" && refused(h.URL) {
			errs = append(errs, field.Invalid(at.Child("url"), h.URL,
				"must not be an address of a node, of a metadata service or of the API server: use the address of the hook"))
		}
		if h.Job == nil || i >= len(items) {
			continue
		}
		item, _ := items[i].(map[string]any)
		errs = append(errs, unknownOf(at.Child("job"), compose.Map(item, "job"))...)
		errs = append(errs, hookContainer(at.Child("job"), h.Job.Core)...)
	}
	return errs
}

// refused reports whether a URL names an address that the provider connects with for no tenant. The provider looks at the address that
// it dials, and so finds what a name hides.
func refused(target string) bool {
	u, err := url.Parse(target)
	if err != nil {
		return true
	}
	a, err := netip.ParseAddr(strings.TrimSuffix(u.Hostname(), "."))
	if err != nil {
		return false
	}
	a = a.WithZone("").Unmap()
	return a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified()
}

// unknownOf are fields of a container that core/v1 does not have.
func unknownOf(at *field.Path, written map[string]any) field.ErrorList {
	raw, err := json.Marshal(written)
	if err != nil {
		return nil
	}
	var errs field.ErrorList
	strict, _ := kjson.UnmarshalStrict(raw, &corev1.Container{}) // What cannot be decoded at all is reported with the schema.
	for _, err := range strict {
		errs = append(errs, field.Invalid(at, field.OmitValueType{}, fmt.Sprintf("%v: remove or correct it: core/v1 has no such field", err)))
	}
	return errs
}

// hookContainer of a Job, which has no volumes, is no server and runs once.
func hookContainer(at *field.Path, c corev1.Container) field.ErrorList {
	var errs field.ErrorList
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"volumeMounts", len(c.VolumeMounts) > 0},
		{"volumeDevices", len(c.VolumeDevices) > 0},
		{"ports", len(c.Ports) > 0},
		{"lifecycle", c.Lifecycle != nil},
		{"livenessProbe", c.LivenessProbe != nil},
		{"readinessProbe", c.ReadinessProbe != nil},
		{"startupProbe", c.StartupProbe != nil},
		{"restartPolicy", c.RestartPolicy != nil},
		{"restartPolicyRules", len(c.RestartPolicyRules) > 0},
		{"name", c.Name != ""},
	} {
		if f.set {
			errs = append(errs, field.Invalid(at.Child(f.name), field.OmitValueType{}, "is not supported for a hook: remove it"))
		}
	}
	for _, e := range c.Env {
		if strings.HasPrefix(e.Name, "CAPSTAN_HOOK_") {
			errs = append(errs, field.Invalid(at.Child("env"), e.Name, "is a name that Capstan sets: choose another name"))
		}
	}
	for _, found := range podvalidation.Unrestricted(nil, corev1.PodSpec{Containers: []corev1.Container{podspec.Restricted(c, false)}}) {
		errs = append(errs, field.Invalid(at, field.OmitValueType{}, found))
	}
	return errs
}
