// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// byName are mounted Secrets by their names, so that their order in the spec does not count.
func byName(secrets []v1alpha1.MountedSecret) []v1alpha1.MountedSecret {
	return slices.SortedFunc(slices.Values(secrets), func(a, b v1alpha1.MountedSecret) int {
		return strings.Compare(a.Name, b.Name)
	})
}

// secretVolume is the name of the volume of a Secret. The name of a Secret may have dots, and be longer than a volume's name.
func secretVolume(name string) string {
	if v := "secret-" + name; len(validation.IsDNS1123Label(v)) == 0 {
		return v
	}
	return "secret-" + compose.Hash([]byte(name))
}

// SecretVolumes of mounted Secrets.
func SecretVolumes(secrets []v1alpha1.MountedSecret) []*applycorev1.VolumeApplyConfiguration {
	vs := make([]*applycorev1.VolumeApplyConfiguration, 0, len(secrets))
	for _, secret := range byName(secrets) {
		vs = append(vs, applycorev1.Volume().
			WithName(secretVolume(secret.Name)).
			WithSecret(applycorev1.SecretVolumeSource().WithSecretName(secret.Name)))
	}
	return vs
}

// secretsPath is the folder that Secrets are mounted below, unless spec.volumeMounts says otherwise.
const secretsPath = "/etc/secrets/" //nolint:gosec // A path and no secret.

// SecretPlace of a mounted Secret.
func SecretPlace(name string) Place {
	return Place{Name: "secret-" + name, Volume: secretVolume(name), Path: secretsPath + name}
}

// SecretPlaces of mounted Secrets.
func SecretPlaces(secrets []v1alpha1.MountedSecret) []Place {
	places := make([]Place, 0, len(secrets))
	for _, secret := range byName(secrets) {
		places = append(places, SecretPlace(secret.Name))
	}
	return places
}
