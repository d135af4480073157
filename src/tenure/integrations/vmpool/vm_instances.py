"""Instances on the VMs of a pool: create one for a pod, with rollback; delete it, with a reboot (cases 79 to 81).

An instance is a VM while a pod has it: its id is the IP, as in Cloud API Adaptor.
"""

import asyncio
import inspect
import ipaddress
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.machines.sftp_reboot import SftpAccess, put_file
from tenure.integrations.vmpool.machines.vm_cleanup import CleanupFunction, TIMEOUT_S, function_cleanup, run_cleanup
from tenure.integrations.vmpool.machines.vm_port import DIAL_S, SSH_PORT, dial
from tenure.integrations.vmpool.pool_errors import INVALID_ALLOCATED_IP, VMPoolExhausted, wrapped
from tenure.integrations.vmpool.pool_log import PoolEvent, audit
from tenure.integrations.vmpool.state.pool_notes import CleanupFailure
from tenure.integrations.vmpool.state.pool_state import VMAllocation
from tenure.kernel.errors import Invalid, TenureError
