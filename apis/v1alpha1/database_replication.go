// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// DatabaseReplication lets consumers read changes of data in the order of commits (logical replication, change data
// capture).
//
// +kubebuilder:validation:XValidation:rule="has(self.slots) || has(self.publications)",message="set slots or publications, or remove replication"
type DatabaseReplication struct {
	// Slots are replication slots: each keeps the changes of one database until its consumer has read them, also across
	// a failover. They need version 17 or later and the parameter wal_level with the value logical in spec.config. A
	// slot that is removed from the list is dropped as soon as no consumer reads it. Default: none.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:example={{"name":"orders_cdc","database":"orders"}}
	// +optional
	Slots []ReplicationSlot `json:"slots,omitempty"`

	// Publications name the tables whose changes can be read with the plugin pgoutput. One that is removed from the list
	// is dropped. Default: none.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:example={{"name":"orders_changes","allTables":true}}
	// +optional
	Publications []Publication `json:"publications,omitempty"`
}

// ReplicationSlot keeps changes until its consumer has read them.
type ReplicationSlot struct {
	// Name of the slot, which the consumer has to name.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9_]*$') && !self.startsWith('capstan') && !self.startsWith('pg_') && !self.matches('_[a-j]_0$')",message="must be lower case letters, digits and _, start with a letter but not with capstan or pg_, and not end like a slot of a member (_a_0): choose another"
	// +kubebuilder:example="orders_cdc"
	Name string `json:"name"`

	// Database whose changes the slot keeps, one of spec.databases. Default: the first.
	//
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:example="orders"
	// +optional
	Database string `json:"database,omitempty"`

	// Plugin of the server that writes the changes; the image must have it. Default: pgoutput, which reads publications.
	//
	// +kubebuilder:default=pgoutput
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9_]*$')",message="must be the name of a plugin, for instance pgoutput"
	// +kubebuilder:example="pgoutput"
	// +optional
	Plugin string `json:"plugin,omitempty"`
}

// Publication names tables whose changes can be read.
//
// +kubebuilder:validation:XValidation:rule="has(self.tables) != (has(self.allTables) && self.allTables)",message="set tables, or allTables to true, not both"
type Publication struct {
	// Name of the publication, which the consumer has to name.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9_]*$') && !self.startsWith('pg_')",message="must be lower case letters, digits and _, and start with a letter but not with pg_"
	// +kubebuilder:example="orders_changes"
	Name string `json:"name"`

	// Database of the tables, one of spec.databases. Default: the first.
	//
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:example="orders"
	// +optional
	Database string `json:"database,omitempty"`

	// Tables as SCHEMA.TABLE, with upper and lower case as in the server. One that does not exist yet is added once it
	// does.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=127
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.matches('^[A-Za-z_][A-Za-z0-9_]*[.][A-Za-z_][A-Za-z0-9_]*$'))",message="must be tables as SCHEMA.TABLE, for instance public.orders"
	// +listType=set
	// +kubebuilder:example={"public.orders"}
	// +optional
	Tables []string `json:"tables,omitempty"`

	// AllTables publishes every table of the database, now and later. Tables without a primary key then refuse updates
	// and deletes until they have a replica identity. Default: false.
	//
	// +kubebuilder:example=true
	// +optional
	AllTables bool `json:"allTables,omitempty"`
}
