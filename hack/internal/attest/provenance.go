// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"encoding/json"
	"fmt"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

// predicateType of the provenance that SLSA defines.
const predicateType = "https://slsa.dev/provenance/v1"

// A Build says how an image was built.
type Build struct {
	// Type is the address of what describes such builds.
	Type string
	// Builder is the address of what ran it.
	Builder string
	// Parameters that the user chose.
	Parameters map[string]any
	// Materials it was built from.
	Materials []Material
}

// A Material is something that a build used.
type Material struct {
	Name string
	// URI, empty for what has none.
	URI string
	// Digests by their algorithm, as in gitCommit or sha256.
	Digests map[string]string
	// Annotations say more, as for a commit with changes that are in none.
	Annotations map[string]any
}

// Provenance returns the statement of an image's build.
func Provenance(s Subject, b Build) ([]byte, error) {
	parameters, err := structpb.NewStruct(b.Parameters)
	if err != nil {
		return nil, fmt.Errorf("cannot describe how %s was built: %w", s.Name, err)
	}
	p := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{BuildType: b.Type, ExternalParameters: parameters},
		RunDetails:      &provenance.RunDetails{Builder: &provenance.Builder{Id: b.Builder}},
	}
	for _, m := range b.Materials {
		annotations, err := structpb.NewStruct(m.Annotations)
		if err != nil {
			return nil, fmt.Errorf("cannot describe what %s was built from: %w", s.Name, err)
		}
		if len(m.Annotations) == 0 {
			annotations = nil
		}
		p.BuildDefinition.ResolvedDependencies = append(p.BuildDefinition.ResolvedDependencies,
			&intoto.ResourceDescriptor{Name: m.Name, Uri: m.URI, Digest: m.Digests, Annotations: annotations})
	}
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("cannot describe how %s was built: %w", s.Name, err)
	}
	encoded, err := protojson.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the provenance of %s: %w", s.Name, err)
	}
	predicate := &structpb.Struct{}
	if err := protojson.Unmarshal(encoded, predicate); err != nil {
		return nil, fmt.Errorf("cannot encode the provenance of %s: %w", s.Name, err)
	}
	statement := &intoto.Statement{
		Type:          intoto.StatementTypeUri,
		Subject:       []*intoto.ResourceDescriptor{{Name: s.Repository, Digest: map[string]string{s.Digest.Algorithm: s.Digest.Hex}}},
		PredicateType: predicateType,
		Predicate:     predicate,
	}
	if err := statement.Validate(); err != nil {
		return nil, fmt.Errorf("cannot describe how %s was built: %w", s.Name, err)
	}
	encoded, err = protojson.Marshal(statement)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the provenance of %s: %w", s.Name, err)
	}
	// protojson varies its white space on purpose.
	var stable any
	if err := json.Unmarshal(encoded, &stable); err != nil {
		return nil, fmt.Errorf("cannot encode the provenance of %s: %w", s.Name, err)
	}
	encoded, err = json.MarshalIndent(stable, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("cannot encode the provenance of %s: %w", s.Name, err)
	}
	return append(encoded, '\n'), nil
}
