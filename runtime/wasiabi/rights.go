package wasiabi

// rights are what may be done with a descriptor, and for a directory also with
// what is opened in it.
type rights uint64

const (
	fdDatasyncRight rights = 1 << iota
	fdReadRight
	fdSeekRight
	fdSetFlagsRight
	fdSyncRight
	fdTellRight
	fdWriteRight
	fdAdviseRight
	fdAllocateRight
	pathCreateDirectoryRight
	pathCreateFileRight
	pathLinkSourceRight
	pathLinkTargetRight
	pathOpenRight
	fdReaddirRight
	pathReadlinkRight
	pathRenameSourceRight
	pathRenameTargetRight
	pathStatRight
	pathSetSizeRight
	pathSetTimesRight
	fdStatRight
	fdSetSizeRight
	fdSetTimesRight
	pathSymlinkRight
	pathRemoveDirectoryRight
	pathUnlinkFileRight
	pollRight
)

const (
	// changingRights are those that a read-only mount doesn't grant.
	changingRights = fdWriteRight | fdAllocateRight | pathCreateDirectoryRight | pathCreateFileRight |
		pathLinkSourceRight | pathLinkTargetRight | pathRenameSourceRight | pathRenameTargetRight |
		pathSetSizeRight | pathSetTimesRight | fdSetSizeRight | fdSetTimesRight |
		pathSymlinkRight | pathRemoveDirectoryRight | pathUnlinkFileRight

	directoryRights = fdSetFlagsRight | fdSyncRight | fdDatasyncRight | fdAdviseRight | pathCreateDirectoryRight |
		pathCreateFileRight | pathLinkSourceRight | pathLinkTargetRight | pathOpenRight | fdReaddirRight |
		pathReadlinkRight | pathRenameSourceRight | pathRenameTargetRight | pathStatRight | pathSetSizeRight |
		pathSetTimesRight | fdStatRight | fdSetTimesRight | pathSymlinkRight | pathRemoveDirectoryRight |
		pathUnlinkFileRight | pollRight

	fileRights = fdDatasyncRight | fdReadRight | fdSeekRight | fdSetFlagsRight | fdSyncRight | fdTellRight |
		fdWriteRight | fdAdviseRight | fdAllocateRight | fdStatRight | fdSetSizeRight | fdSetTimesRight | pollRight

	inputRights  = fdReadRight | fdSetFlagsRight | fdStatRight | pollRight
	outputRights = fdWriteRight | fdSetFlagsRight | fdStatRight | pollRight

	// writableRights make no sense on a file that wasn't opened for writing.
	writableRights = fdWriteRight | fdAllocateRight | fdSetSizeRight
)
