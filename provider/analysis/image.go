// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"strings"

	"github.com/capstan-dev/capstan/provider/internal/podhealth"
)

// images that spec.image names.
var images = podhealth.PullRemedies{
	podhealth.PullReference: "correct spec.image",
	podhealth.PullMissing:   "correct spec.image, or push the image",
	podhealth.PullAccess:    "name a Secret that opens the registry in spec.imagePullSecrets, or correct spec.image",
	podhealth.PullNetwork:   "see that the nodes reach the registry, or name another one in spec.image",
	podhealth.PullPlatform:  "build the image for the platform of the nodes, or choose other nodes by spec.scheduling.nodeSelector",
	podhealth.PullRoom:      "make room on the nodes, or make the image smaller",
}

// imagePull finds a container whose image, or that of its model, cannot be had.
func imagePull(s subject) *podhealth.Hindrance {
	image, remedies := s.Spec.Image, images

	if w := s.Status.State.Waiting; w != nil {
		if v := s.volumeImage(w.Message); v != "" {
			image, remedies = v, each(images, ofModel)
		}
	}

	if s.companion() {
		remedies = each(images, func(string) string { return remedyCompanion })
	}

	return s.Pull(image, remedies)
}

// each remedy, put in other words.
func each(remedies podhealth.PullRemedies, said func(string) string) podhealth.PullRemedies {
	for i := range remedies {
		remedies[i] = said(remedies[i])
	}

	return remedies
}

// ofModel is a remedy for the image of a volume.
func ofModel(remedy string) string {
	return strings.ReplaceAll(remedy, "spec.image,", "spec.model.oci.reference,") + " (the image is that of spec.model.oci.reference)"
}
