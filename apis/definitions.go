// SPDX-License-Identifier: Apache-2.0

// Package apis holds the definitions and the forms of the composite resources as make generate writes them.
package apis

import _ "embed"

// Definitions of the composite resources: YAML of a CompositeResourceDefinition.
var (
	//go:embed algorithm/definition.yaml
	Algorithm []byte
	//go:embed database/definition.yaml
	Database []byte
	//go:embed experiment/definition.yaml
	Experiment []byte
	//go:embed training/definition.yaml
	Training []byte
	//go:embed pipeline/definition.yaml
	Pipeline []byte
	//go:embed preview/definition.yaml
	Preview []byte
)

// Forms of the composite resources that have one: a JSON schema with the fields of the first screen. The name of each property is the path of
// a field below the spec. There are no defaults: what is not filled in is not set.
var (
	//go:embed algorithm/form.json
	AlgorithmForm []byte
	//go:embed database/form.json
	DatabaseForm []byte
	//go:embed pipeline/form.json
	PipelineForm []byte
	//go:embed training/form.json
	TrainingForm []byte
)
