// SPDX-License-Identifier: Apache-2.0

package crew

// Labels of the pods of a run, besides the labels that Kubernetes gives pods of a Job.
const (
	// LabelTraining has the name of the Training. The provider watches only pods that have it.
	LabelTraining = "capstan.dev/training"
	// LabelRun has the number of the run.
	LabelRun = "capstan.dev/run"
)
