// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/podspec"
)

// A Container is what decides where volumes appear in the container that a spec describes.
type Container struct {
	Spec    *field.Path
	Config  v1alpha1.Config
	Secrets []v1alpha1.MountedSecret

	// Model is the name of the volume of the model, and ModelPath its usual folder. Both are empty without a model.
	Model, ModelPath string

	// Volumes of spec.pod, and Mounts of spec.volumeMounts.
	Volumes []v1alpha1.PodVolume
	Mounts  []v1alpha1.PodVolumeMount
}

// Folders that volumes take.
func (c Container) Folders() []Mount {
	var ms []Mount
	usual := func(at *field.Path, name, path string) {
		if !podspec.Named(c.Mounts, name) {
			ms = append(ms, Mount{Field: at, Path: path})
		}
	}
	for _, p := range podspec.ConfigPlace(c.Config) {
		usual(c.Spec.Child("config"), p.Name, p.Path)
	}
	for i, secret := range c.Secrets {
		p := podspec.SecretPlace(secret.Name)
		usual(c.Spec.Child("secrets").Index(i), p.Name, p.Path)
	}
	if c.Model != "" {
		usual(c.Spec.Child("model"), c.Model, c.ModelPath)
	}
	for i, m := range c.Mounts {
		ms = append(ms, Mount{Field: c.Spec.Child("volumeMounts").Index(i).Child("mountPath"), Path: m.MountPath})
	}
	return ms
}

// Unknown volumes of spec.volumeMounts, and files of Secrets that would not change with them.
func (c Container) Unknown() field.ErrorList {
	var errs field.ErrorList
	for i, m := range c.Mounts {
		at := c.Spec.Child("volumeMounts").Index(i)
		secret := slices.IndexFunc(c.Secrets, func(s v1alpha1.MountedSecret) bool { return podspec.SecretPlace(s.Name).Name == m.Name })
		switch {
		case secret >= 0:
			if m.SubPath != "" && c.Secrets[secret].Rotate != v1alpha1.RotateRolling {
				errs = append(errs, field.Invalid(at.Child("subPath"), m.SubPath, "would not change with the Secret: remove it, or set "+
					c.Spec.Child("secrets").Index(secret).Child("rotate").String()+" to Rolling where the kind has it"))
			}
		case m.Name == podspec.VolumeConfig && len(c.Config) > 0, c.Model != "" && m.Name == c.Model, c.has(m.Name):
		default:
			errs = append(errs, field.Invalid(at.Child("name"), m.Name,
				"is no volume of spec.pod.volumes: add it there, or name what is mounted in any case: config, model or secret-NAME, where the spec has it"))
		}
	}
	return errs
}

func (c Container) has(volume string) bool {
	return slices.ContainsFunc(c.Volumes, func(v v1alpha1.PodVolume) bool { return v.Name == volume })
}
