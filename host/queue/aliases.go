package queue

import "github.com/jobhost/jobhost/host/queue/record"

// What was moved to package record, until all its users say so.

type (
	Key            = record.Key
	Place          = record.Place
	Claimed        = record.Claimed
	Body           = record.Body
	DeadReader     = record.DeadReader
	DeadPlace      = record.DeadPlace
	DeadQuery      = record.DeadQuery
	DeadRecord     = record.DeadRecord
	DeathRecord    = record.DeathRecord
	Effects        = record.Effects
	KVKind         = record.KVKind
	KVChange       = record.KVChange
	KVEntry        = record.KVEntry
	KVQuery        = record.KVQuery
	Parent         = record.Parent
	Family         = record.Family
	EffectReader   = record.EffectReader
	Group          = record.Group
	Status         = record.Status
	StatusCounts   = record.StatusCounts
	JobSpec        = record.JobSpec
	JobRecord      = record.JobRecord
	TaskRecord     = record.TaskRecord
	ResultRecord   = record.ResultRecord
	LogRecord      = record.LogRecord
	ObjectReader   = record.ObjectReader
	Forget         = record.Forget
	Op             = record.Op
	OpResult       = record.OpResult
	Changed        = record.Changed
	Added          = record.Added
	Submit         = record.Submit
	Settle         = record.Settle
	End            = record.End
	ChangeKV       = record.ChangeKV
	Cancel         = record.Cancel
	Revive         = record.Revive
	Delete         = record.Delete
	Note           = record.Note
	Rewind         = record.Rewind
	Tidy           = record.Tidy
	Origin         = record.Origin
	ScheduleState  = record.ScheduleState
	Fire           = record.Fire
	StateReader    = record.StateReader
	NoteStates     = record.NoteStates
	ForgetStates   = record.ForgetStates
	Store          = record.Store
	Reader         = record.Reader
	ListQuery      = record.ListQuery
	Roomy          = record.Roomy
	Accompanied    = record.Accompanied
	Millis         = record.Millis
	Transition     = record.Transition
	WorkflowView   = record.WorkflowView
	WorkflowTx     = record.WorkflowTx
	WorkflowReader = record.WorkflowReader
	WorkflowStatus = record.WorkflowStatus
	WorkflowRecord = record.WorkflowRecord
	Ending         = record.Ending
	StepRecord     = record.StepRecord
	JobOutput      = record.JobOutput
	WorkflowQuery  = record.WorkflowQuery
	Advance        = record.Advance
	DeleteWorkflow = record.DeleteWorkflow
	Dropped        = record.Dropped
)

const (
	KVSet             = record.KVSet
	KVAdd             = record.KVAdd
	KVDelete          = record.KVDelete
	Open              = record.Open
	Succeeded         = record.Succeeded
	Dead              = record.Dead
	Cancelled         = record.Cancelled
	NoteRestored      = record.NoteRestored
	WorkflowRunning   = record.WorkflowRunning
	WorkflowCompleted = record.WorkflowCompleted
	WorkflowFailed    = record.WorkflowFailed
	WorkflowCancelled = record.WorkflowCancelled
	WorkflowRemoving  = record.WorkflowRemoving
)

var (
	KVCost      = record.KVCost
	ErrVersion  = record.ErrVersion
	ErrNoNumber = record.ErrNoNumber
	ErrQuota    = record.ErrQuota
	ErrChildren = record.ErrChildren
	ErrNoKey    = record.ErrNoKey
	AddNumber   = record.AddNumber
	GroupOf     = record.GroupOf
	ErrRefTaken = record.ErrRefTaken
	TakenID     = record.TakenID
	ErrFenced   = record.ErrFenced
	MillisOf    = record.MillisOf
)
