// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// JobLineage is what events about runs of a Pipeline or Training say of their data.
type JobLineage struct {
	// Inputs are the datasets that the program reads. Default: none.
	//
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:example={{"namespace":"s3://lake","name":"raw/clicks"}}
	// +optional
	Inputs []JobDataset `json:"inputs,omitempty"`

	// Outputs are the datasets that the program writes. Default: none.
	//
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:example={{"namespace":"postgres://orders-db-rw.shop.svc:5432","name":"shop.public.features"}}
	// +optional
	Outputs []JobDataset `json:"outputs,omitempty"`
}

// JobDataset is a dataset by its name in OpenLineage, whose naming conventions let other tools find it.
type JobDataset struct {
	// Namespace is where the data is, for instance s3://BUCKET or postgres://HOST:PORT.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z][a-zA-Z0-9+.-]*(:[^[:cntrl:] ]+)?$')",message="must be the name of a scheme, alone or with a place, for instance s3://lake or bigquery"
	// +kubebuilder:example="s3://lake"
	Namespace string `json:"namespace"`

	// Name of the data there, for instance a path, or DATABASE.SCHEMA.TABLE.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^[:cntrl:]]+$')",message="must be one line of text"
	// +kubebuilder:example="raw/clicks"
	Name string `json:"name"`
}
