// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Names by which the owner of a Database demands that copies of it are masked.
const (
	// AnnotationPreviewsMask of a Database names a ConfigMap of its namespace with statements that mask each Preview of it.
	AnnotationPreviewsMask = "capstan.dev/previews-mask"
	// KeyMask is the key of such a ConfigMap: a YAML list of statements, each with database and sql.
	KeyMask = "mask.yaml"
	// MaxMaskStatements is how many statements mask a copy at most.
	MaxMaskStatements = 32
	// MaxMaskSQL is how many characters the SQL of one of them has at most.
	MaxMaskSQL = 4000
)

// MaskStatement is a statement that masks data of a copy before any client can connect to it.
type MaskStatement struct {
	// Database to run the statement in, by its name in spec.databases of the original.
	//
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9_]*$')",message="must be the name of a database: lower case letters, digits and _, starting with a letter"
	// +kubebuilder:example="orders_db"
	Database string `json:"database"`

	// SQL of one statement. It runs with the rights of the owner of the database, and not as a superuser, for at most six hours. What it
	// commits stays when a later statement fails.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4000
	// +kubebuilder:example="update customers set email = 'customer-' || id || '@example.org', name = 'Customer ' || id"
	SQL string `json:"sql"`
}
