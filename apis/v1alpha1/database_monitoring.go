// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// DatabaseMonitoring defines what is measured.
type DatabaseMonitoring struct {
	// Enabled runs a metrics exporter beside each member. If the cluster has the Prometheus Operator, it also adds
	// scraping and alerts. A change restarts the members one by one. Default: true.
	//
	// +kubebuilder:example=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// Queries whose results are metrics, which the exporter of each member runs with few rights. The first query, and the
	// removal of the last, restart the members one by one; other changes restart nothing. Default: none.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Queries []DatabaseQuery `json:"queries,omitempty"`
}

// QueryColumn is a column of the result of a query.
//
// +kubebuilder:validation:MaxLength=40
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9_]*$')",message="must be lower case letters, digits and _, and start with a letter"
type QueryColumn string

// DatabaseQuery is a query whose result is metrics.
type DatabaseQuery struct {
	// Name of the query. Its metrics are capstan_query_NAME_COLUMN.
	//
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9_]*$')",message="must be lower case letters, digits and _, and start with a letter"
	// +kubebuilder:example="open_orders"
	Name string `json:"name"`

	// Help is the description of the metrics. Default: empty.
	//
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]')",message="must not have control characters"
	// +kubebuilder:example="Orders that are not shipped yet."
	// +optional
	Help string `json:"help,omitempty"`

	// SQL is one statement that only reads. It runs as the role exporter, a member of pg_monitor: grant it what it has to
	// read. It fails after 5 s, or with more than 200 rows.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="select state, count(*) as number from orders group by state"
	SQL string `json:"sql"`

	// Values are the columns that hold numbers. Each is a metric.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=set
	// +kubebuilder:example={"number"}
	Values []QueryColumn `json:"values"`

	// Labels are the columns that become labels of the metrics, cut after 128 bytes. No two rows have the same. Default:
	// none, for a result of one row.
	//
	// +kubebuilder:validation:MaxItems=4
	// +listType=set
	// +kubebuilder:example={"state"}
	// +optional
	Labels []QueryColumn `json:"labels,omitempty"`

	// Database to run it in, one of spec.databases. Default: the first.
	//
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:example="orders"
	// +optional
	Database string `json:"database,omitempty"`

	// IntervalSeconds between two runs on a member, 10 to 3600. Default: 60.
	//
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:example=60
	// +optional
	IntervalSeconds *int32 `json:"intervalSeconds,omitempty"`
}

// LogFormat is what the lines of logs look like.
//
// +kubebuilder:validation:Enum=Text;JSON
type LogFormat string

// What the lines of logs look like.
const (
	// LogText: as each program writes them.
	LogText LogFormat = "Text"
	// LogJSON: one object of JSON for each message.
	LogJSON LogFormat = "JSON"
)

// DatabaseLogs defines what the logs of members and poolers look like.
type DatabaseLogs struct {
	// Format: Text, as each program writes them; or JSON, one object for each message of the server, of what manages it and
	// of Capstan, with time, level and msg. A change restarts the members one by one. Default: Text.
	//
	// +kubebuilder:default=Text
	// +kubebuilder:example=JSON
	// +optional
	Format LogFormat `json:"format,omitempty"`
}
