// SPDX-License-Identifier: Apache-2.0

// Package apis holds the definitions of the composite resources as make generate writes them.
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
)
